r"""Probabilities of many classes as products along the paths of a binary tree.

A tree is given by the **codes** of its leaves: the code of a class is the path from the
root to its leaf, ``"0"`` for left and ``"1"`` for right. The inner nodes are the proper
beginnings of the codes, the root is the empty one, and :math:`C` leaves have
:math:`C - 1` inner nodes.
"""

import heapq
from collections.abc import Sequence
from math import isfinite, log2
from typing import NamedTuple

from jaxtyping import Float, Int64

from dlcore._torch import Generator, Tensor, embedding, logsigmoid, nn, torch
from dlcore.checks import check, check_shape, check_whole
from dlcore.recurrence.recurrent import uniform
from dlcore.recurrence.vocabulary import check_indices

__all__ = [
    "Found",
    "HierarchicalSoftmax",
    "balanced",
    "entropy_bits",
    "expected_depth",
    "huffman",
]


def huffman(weights: Sequence[float]) -> list[str]:
    """Return the codes of a binary tree of least expected depth (Huffman 1952).

    Join the two lightest trees into one, until one is left. Of trees that weigh the same,
    the older one is taken, and classes come before what was joined.

    Args:
        weights: of the classes, such as probabilities or counts; not negative.

    Example:
        >>> huffman([4, 2, 1, 1])
        ['0', '10', '110', '111']
    """
    _check_weights("huffman: weights", weights)
    C = len(weights)
    trees = [(weight, c) for c, weight in enumerate(weights)]
    heapq.heapify(trees)
    joined = []
    for node in range(C, 2 * C - 1):
        (light, left), (heavy, right) = (heapq.heappop(trees), heapq.heappop(trees))
        joined.append((left, right))
        heapq.heappush(trees, (light + heavy, node))
    codes = [""] * (2 * C - 1)
    for node in range(2 * C - 2, C - 1, -1):
        left, right = joined[node - C]
        codes[left], codes[right] = codes[node] + "0", codes[node] + "1"
    return codes[:C]


def balanced(order: Sequence[int]) -> list[str]:
    """Return the codes of the binary tree that halves a row of classes again and again.

    Args:
        order: the classes 0, 1, … from left to right; ``range(C)`` for their own order.

    Example:
        >>> balanced(range(4))
        ['00', '01', '10', '11']
    """
    C = len(order)
    ok = C > 0 and sorted(order) == list(range(C))
    check(ok, "balanced: order", "have each of the classes 0, 1, … once", [*order])
    codes, parts = [""] * C, [(list(order), "")]
    while parts:
        part, code = parts.pop()
        if len(part) == 1:
            codes[part[0]] = code
        else:
            half = (len(part) + 1) // 2
            parts += [(part[:half], code + "0"), (part[half:], code + "1")]
    return codes


def expected_depth(weights: Sequence[float], codes: Sequence[str]) -> float:
    """Return the mean length of the codes, each weighted by its class.

    Example:
        >>> expected_depth([4, 2, 1, 1], ["0", "10", "110", "111"])
        1.75
    """
    _check_weights("expected_depth: weights", weights)
    C, n = len(weights), len(codes)
    check(n == C, "expected_depth: codes", f"be as many as the {C} weights", n)
    total = sum(w * len(code) for w, code in zip(weights, codes, strict=True))
    return total / sum(weights)


def entropy_bits(weights: Sequence[float]) -> float:
    r"""Return the entropy of a distribution in bits.

    It is :math:`-\sum_c p_c \log_2 p_c` for the weights :math:`p_c` over their sum.

    Example:
        >>> entropy_bits([4, 2, 1, 1])
        1.75
    """
    _check_weights("entropy_bits: weights", weights)
    total = sum(weights)
    return -sum(w / total * log2(w / total) for w in weights if w > 0)


class Found(NamedTuple):
    """The most probable class, with its log probability and the cost of the search.

    Attributes:
        label: the class.
        log_probability: of the class.
        visited: number of inner nodes whose score was computed.

    Example:
        >>> net = HierarchicalSoftmax(3, ["0", "10", "110", "111"])
        >>> _ = net.b.data.fill_(-2.0)  # left is likely everywhere
        >>> found = net.argmax(torch.zeros(3))
        >>> found.label, found.visited
        (0, 1)
    """

    label: int
    log_probability: float
    visited: int


class HierarchicalSoftmax(nn.Module):
    r"""A distribution over classes: a coin toss at each inner node of a binary tree.

    At the inner node :math:`v` the right branch has the probability
    :math:`\sigma(w_v^\top z + b_v)`; the probability of a class is the product along its
    path (Morin and Bengio 2005).

    Equals ``sklearn.linear_model.LogisticRegression`` if there are two classes.

    Args:
        inputs: numbers :math:`z` has.
        codes: of the classes; each inner node must have two children.
        generator: source of the weights, drawn uniformly between
            :math:`\pm 1 / \sqrt{\text{inputs}}`; biases are 0.
        sparse: give the gradient of W as a list of the rows that were used.

    Attributes:
        W: weights of the inner nodes, those near the root first.
        b: their biases.
        nodes: for each class the inner nodes on its path, filled up with 0.
        signs: +1 where its path goes right, −1 where left, 0 behind its end.
        below: for each inner node its left and right child: an inner node, or
            :math:`-1 - c` for the class :math:`c`.

    Example:
        >>> net = HierarchicalSoftmax(3, ["0", "10", "110", "111"])
        >>> net.log_probabilities(torch.zeros(1, 3)).exp().detach()  # fair coins
        tensor([[0.5000, 0.2500, 0.1250, 0.1250]])
    """

    nodes: Tensor
    signs: Tensor
    below: Tensor

    def __init__(
        self,
        inputs: int,
        codes: Sequence[str],
        generator: Generator | None = None,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        check_whole("HierarchicalSoftmax: inputs", inputs, 1)
        names = _inner_nodes(codes)
        C, depth = len(codes), max(map(len, codes))
        place = {name: i for i, name in enumerate(names)}
        place |= {code: -1 - c for c, code in enumerate(codes)}
        nodes = torch.tensor(
            [
                [place[code[:i]] for i in range(len(code))] + [0] * (depth - len(code))
                for code in codes
            ],
            dtype=torch.long,
        ).reshape(C, depth)
        signs = torch.tensor(
            [
                [1.0 if bit == "1" else -1.0 for bit in code]
                + [0.0] * (depth - len(code))
                for code in codes
            ]
        ).reshape(C, depth)
        pairs = [[place[name + "0"], place[name + "1"]] for name in names]
        self.sparse = sparse
        self.register_buffer("nodes", nodes)
        self.register_buffer("signs", signs)
        self.register_buffer(
            "below", torch.tensor(pairs, dtype=torch.long).reshape(C - 1, 2)
        )
        self.W = uniform(inputs, (C - 1, inputs), generator)
        self.b = nn.Parameter(torch.zeros(C - 1))

    def forward(
        self, z: Float[Tensor, "B D"], y: Int64[Tensor, "B"]
    ) -> Float[Tensor, "B"]:
        """Return the log-probability of one class for each input: the cost of a path."""
        self._check(z)
        check_shape("HierarchicalSoftmax: y", y, len(z))
        check_indices("HierarchicalSoftmax: y", y, len(self.nodes))
        nodes, signs = self.nodes[y], self.signs[y]
        w = embedding(nodes, self.W, sparse=self.sparse)
        scores = (w @ z[:, :, None]).squeeze(-1) + self.b[nodes]
        return (logsigmoid(signs * scores) * signs.abs()).sum(-1)

    def log_probabilities(self, z: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """Return the log-probabilities of all classes: the cost of the whole tree."""
        self._check(z)
        scores = z @ self.W.T + self.b
        steps = logsigmoid(self.signs * scores[:, self.nodes])
        return (steps * self.signs.abs()).sum(-1)

    @torch.no_grad()
    def argmax(self, z: Float[Tensor, "D"]) -> Found:
        """Find the most probable class, best first.

        Of all nodes reached so far, go on at the most probable one. A node is at least as
        probable as all below it, so the first leaf whose turn comes is the best.
        """
        self._check(z[None])
        C = len(self.nodes)
        # (minus log-probability, leaves before inner nodes, node)
        reached = [(0.0, C > 1, 0 if C > 1 else -1)]
        visited = 0
        while reached[0][1]:
            cost, _, v = heapq.heappop(reached)
            visited += 1
            score = self.W[v] @ z + self.b[v]
            for child, sign in zip(self.below[v].tolist(), (-1, 1), strict=True):
                step = -logsigmoid(sign * score).item()
                heapq.heappush(reached, (cost + step, child >= 0, child))
        cost, _, leaf = reached[0]
        return Found(-1 - leaf, -cost, visited)

    @torch.no_grad()
    def sample(
        self, z: Float[Tensor, "B D"], generator: Generator | None = None
    ) -> Int64[Tensor, "B"]:
        """Draw a class for each input: toss a coin at each node on the way down."""
        self._check(z)
        start = 0 if len(self.nodes) > 1 else -1
        at = torch.full((len(z),), start, device=z.device)
        while (going := at >= 0).any():
            v = at[going]
            scores = (self.W[v] * z[going]).sum(-1) + self.b[v]
            coin = torch.rand(len(v), generator=generator, dtype=z.dtype)
            right = (coin < torch.sigmoid(scores)).long()
            at[going] = self.below[v, right]
        return -1 - at

    def _check(self, z: Tensor) -> None:
        check_shape("HierarchicalSoftmax: z", z, None, self.W.shape[1])


def _check_weights(what: str, weights: Sequence[float]) -> None:
    ok = all(isfinite(w) and w >= 0 for w in weights) and sum(weights) > 0
    check(ok, what, "be finite and not negative, with a positive one", [*weights][:9])


def _inner_nodes(codes: Sequence[str]) -> list[str]:
    """Refuse codes that are no tree; return its inner nodes, the root first."""
    what = "HierarchicalSoftmax: codes"
    other = [code for code in codes if not set(code) <= {"0", "1"}]
    check(not other, what, "be made of 0 and 1", other)
    inner = {code[:i] for code in codes for i in range(len(code))}
    clash = [code for code in codes if code in inner]
    check(not clash, what, "not begin another code", clash)
    n, got = len({*codes}), f"{len({*codes})} different codes of {len(codes)}"
    ok = n == len(codes) == len(inner) + 1
    check(ok, what, "differ, and give each inner node two children", got)
    return sorted(inner, key=lambda name: (len(name), name))
