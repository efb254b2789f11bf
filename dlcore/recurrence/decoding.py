r"""Decoding: from scores for the next token to a token, and on to a whole sequence.

Rules that change the scores return scores again, :math:`-\infty` where a token is cut, so
that they can follow each other.

A model that writes has ``begin(...)``, which returns a state, tensors with a row for each
sequence, and ``step(state, tokens)``, which takes the token before, one for each row, and
returns the log probabilities of the next one, a row for each, and the next state.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Bool, Float, Int64

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import (
    check,
    check_between,
    check_positive,
    check_shape,
    check_sizes,
    check_whole,
)

__all__ = [
    "State",
    "Step",
    "beam_search",
    "greedy",
    "nucleus",
    "sample",
    "tempered",
    "top_k",
]

#: What a model keeps between steps: tensors with a row for each sequence.
State: TypeAlias = tuple[Tensor, ...]
#: A step of a model: state and last tokens to log probabilities and the next state.
Step: TypeAlias = Callable[[State, Tensor], tuple[Tensor, State]]


def tempered(
    logits: Float[Tensor, "*B C"], temperature: float
) -> Float[Tensor, "*B C"]:
    """Divide logits by a temperature: a low one sharpens, a high one flattens.

    At zero only the best token would be left: that is ``top_k(logits, 1)``.

    Example:
        >>> tempered(torch.tensor([2.0, -1.0]), 0.5).tolist()
        [4.0, -2.0]
    """
    _check_logits("tempered", logits)
    check_positive("tempered: temperature", temperature)
    return logits / temperature


def top_k(logits: Float[Tensor, "*B C"], k: int) -> Float[Tensor, "*B C"]:
    """Keep the ``k`` tokens with the largest logits; of equals, the first.

    Equals ``torch.topk`` in the logits that it keeps.

    Example:
        >>> top_k(torch.tensor([1.0, 3.0, 2.0]), 2).tolist()
        [-inf, 3.0, 2.0]
    """
    _check_logits("top_k", logits)
    check_whole("top_k: k", k, 1)
    C = logits.shape[-1]
    check(k <= C, "top_k: k", f"be at most the number of tokens {C}", k)
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return _keep(logits, order, torch.arange(C, device=logits.device) < k)


def nucleus(logits: Float[Tensor, "*B C"], p: float) -> Float[Tensor, "*B C"]:
    """Keep the fewest most probable tokens that have the probability ``p`` together.

    A token stays if it and those behind it have more than 1 - p; so with p = 1 all that
    can come stay, however improbable. Of equals, the first stays.

    Example:
        >>> nucleus(torch.tensor([0.5, 0.3, 0.2]).log(), 0.6).exp()
        tensor([0.5000, 0.3000, 0.0000])
    """
    _check_logits("nucleus", logits)
    check_between("nucleus: p", p, 0, 1, "(]")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    probabilities = logits.softmax(dim=-1).gather(-1, order)
    tail = probabilities.flip(-1).cumsum(-1).flip(-1)
    rounding = logits.shape[-1] * torch.finfo(logits.dtype).eps
    keep = tail > (1 - p) * (1 + rounding)
    keep[..., 0] = True
    return _keep(logits, order, keep)


def _keep(
    logits: Float[Tensor, "*B C"],
    order: Int64[Tensor, "*B C"],
    keep: Bool[Tensor, "*B C"] | Bool[Tensor, "C"],
) -> Float[Tensor, "*B C"]:
    """Cut tokens; ``keep`` is in order of rank, and ``order`` has the tokens of the ranks."""
    kept = torch.zeros_like(logits, dtype=torch.bool)
    kept = kept.scatter(-1, order, keep.expand_as(order))
    return logits.masked_fill(~kept, -torch.inf)


def sample(
    logits: Float[Tensor, "*B C"], generator: Generator | None = None
) -> Int64[Tensor, "*B"]:
    """Draw a token for each row of logits, with the probabilities softmax(logits).

    Example:
        >>> sample(torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])).tolist()
        [0, 1]
    """
    _check_logits("sample", logits)
    probabilities = logits.softmax(dim=-1).reshape(-1, logits.shape[-1])
    tokens = torch.multinomial(probabilities, 1, generator=generator)
    return tokens.reshape(logits.shape[:-1])


@torch.no_grad()
def greedy(step: Step, state: State, start: int, longest: int) -> Int64[Tensor, "B K"]:
    """Write ``longest`` tokens, the most probable one at each step.

    What stands behind an end token is for the caller to cut off.

    Args:
        step: of a model.
        state: of the same model, at the start.
        start: token that ``step`` is given first.
        longest: number of tokens.

    Example:
        >>> step = lambda state, y: (torch.eye(4)[(y + 1) % 4].log(), state)
        >>> greedy(step, (torch.zeros(1),), start=0, longest=5).tolist()
        [[1, 2, 3, 0, 1]]
    """
    check_whole("greedy: longest", longest, 1)
    check_whole("greedy: start", start, 0)
    y = torch.full((len(state[0]),), start, device=state[0].device)
    written = []
    for _ in range(longest):
        scores, state = step(state, y)
        y = scores.argmax(dim=1)
        written.append(y)
    return torch.stack(written, dim=1)


@torch.no_grad()
def beam_search(
    step: Step, state: State, start: int, end: int, width: int, longest: int
) -> list[tuple[list[int], float]]:
    r"""Search for the most probable sequence, keeping the ``width`` best beginnings.

    A sequence that has ended keeps its place in the beam as long as it is among the best.
    With ``width=1`` this is greedy decoding; with :math:`C^\text{longest}` it is exact.

    Args:
        step: of a model.
        state: of the same model, at the start, for one sequence.
        start: token that ``step`` is given first.
        end: token that ends a sequence.
        width: beginnings to keep.
        longest: tokens of a sequence at most, with the end.

    Returns:
        Up to ``width`` sequences with their log probabilities, best first; of equals, the
        one found first. A sequence is without ``start``, and has ``end`` as its last token
        unless it was cut off at ``longest``.

    Example:
        >>> P = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).log()
        >>> step, state = lambda state, y: (P[y], state), (torch.zeros(1),)
        >>> [beam_search(step, state, 0, 0, width, 3)[0][0] for width in (1, 2)]
        [[1, 0], [2, 0]]
    """
    check_sizes("beam_search", width=width, longest=longest)
    check_whole("beam_search: start", start, 0)
    check_whole("beam_search: end", end, 0)
    _check_rows("state", state, 1)
    beam: list[tuple[list[int], float]] = [([], 0.0)]
    device = state[0].device
    for _ in range(longest):
        live = [(t, p) for t, p in beam if t[-1:] != [end]]
        last = [tokens[-1] if tokens else start for tokens, _ in live]
        scores, state = step(state, torch.tensor(last, device=device))
        _check_scores(scores, len(live), end)
        _check_rows("the state that step returns", state, len(live))
        before = torch.tensor([p for _, p in live], dtype=torch.float64)
        totals = (before[:, None] + scores.cpu()).flatten()
        best = totals.argsort(descending=True, stable=True).tolist()
        C = scores.shape[1]
        grown = [(i, totals[i].item()) for i in best if totals[i] > -torch.inf]
        ended = [(t, p, -1) for t, p in beam if t[-1:] == [end]]
        more = [([*live[i // C][0], i % C], p, i // C) for i, p in grown]
        both = sorted(ended + more, key=lambda one: -one[1])[:width]
        beam = [(tokens, p) for tokens, p, _ in both]
        kept = [row for tokens, _, row in both if tokens[-1] != end]
        if not kept:
            break
        rows = torch.tensor(kept, device=device)
        state = tuple(part.index_select(0, rows) for part in state)
    return beam


def _check_rows(what: str, state: State, rows: int) -> None:
    """Refuse a state with another number of rows."""
    got = sorted({len(part) for part in state})
    check(got == [rows], f"beam_search: {what}", f"have {rows} rows", got)


def _check_scores(scores: Tensor, rows: int, end: int) -> None:
    """Refuse what are no log probabilities for each row."""
    what = "beam_search: what step returns"
    check_shape(what, scores, rows, None)
    C = scores.shape[1]
    check(end < C, what, f"have a column for each token up to the end {end}", C)
    sums = scores.logsumexp(dim=1)
    got, hint = f"sums {sums.exp().tolist()}", "Take log_softmax of scores."
    ok = bool((sums.abs() < 1e-3).all())
    check(ok, what, "be logarithms of probabilities with the sum 1", got, hint)


def _check_logits(who: str, logits: Tensor) -> None:
    """Refuse no tokens, NaN, +∞, and rows in which nothing is left."""
    what, shape = f"{who}: logits", tuple(logits.shape)
    check(shape[-1:] > (0,), what, "have a score for at least one token", shape)
    ok = bool(logits.amax(dim=-1).isfinite().all())  # the largest of NaN is NaN
    rule = "be numbers, or −∞, with a finite one in each row"
    check(ok, what, rule, "NaN, +∞ or a row of −∞")
