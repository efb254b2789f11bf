"""Attention: every query takes a weighted mean of the values."""

import math
from typing import TypeAlias

from jaxtyping import Bool, Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_sizes, check_whole
from dlcore.transformers.linear import Linear

__all__ = ["Heads", "MultiHeadAttention", "attend", "causal_mask", "masked_softmax"]

#: Queries, keys or values of all heads, with the axes (B, heads, T, width of a head).
Heads: TypeAlias = Float[Tensor, "B h _ d"]


def masked_softmax(
    S: Float[Tensor, "*batch Tq Tk"], mask: Bool[Tensor, "*#batch #Tq Tk"] | None
) -> Float[Tensor, "*batch Tq Tk"]:
    r"""Return the softmax of scores over the positions that a mask lets see.

    .. math:: A = \operatorname{softmax}(S)

    Args:
        S: a row of scores for each query.
        mask: True where a query may look. A query that may look nowhere has weights 0, as
            in PyTorch.

    Example:
        >>> S = torch.tensor([[0.0, 0.0, 5.0]])
        >>> mask = torch.tensor([[True, True, False]])
        >>> masked_softmax(S, mask).tolist()
        [[0.5, 0.5, 0.0]]
    """
    if mask is None:
        return S.softmax(dim=-1)
    _check_mask("masked_softmax", mask, S.shape)
    blind = ~mask.any(dim=-1, keepdim=True)
    A = S.masked_fill(~(mask | blind), -torch.inf).softmax(dim=-1)
    return A.masked_fill(blind, 0) if blind.any() else A


def attend(
    Q: Float[Tensor, "*batch Tq d_k"],
    K: Float[Tensor, "*batch Tk d_k"],
    V: Float[Tensor, "*batch Tk d_v"],
    mask: Bool[Tensor, "*#batch #Tq Tk"] | None = None,
) -> tuple[Float[Tensor, "*batch Tq d_v"], Float[Tensor, "*batch Tq Tk"]]:
    r"""Return scaled dot-product attention, and its weights (Vaswani et al. 2017).

    .. math:: A = \operatorname{softmax}(Q K^\top / \sqrt{d_k}), \qquad Y = A V

    Equals ``torch.nn.functional.scaled_dot_product_attention``.

    Args:
        Q: queries.
        K: keys, as wide as the queries.
        V: values, one for each key.
        mask: True where a query may look.

    Returns:
        ``(Y, A)``; a row of ``A`` has the sum 1, or 0 where the query may look nowhere.

    Example:
        >>> Q, K, V = torch.zeros(1, 1), torch.ones(2, 1), torch.tensor([[2.0], [4.0]])
        >>> Y, A = attend(Q, K, V)  # equal scores: the mean of the values
        >>> Y.tolist(), A.tolist()
        ([[3.0]], [[0.5, 0.5]])
    """
    sizes = [tuple(M.shape) for M in (Q, K, V)]
    ok = min(map(len, sizes)) > 1 and sizes[0][-1] == sizes[1][-1] > 0
    ok = ok and sizes[1][-2] == sizes[2][-2]
    rule = "have keys as wide as the queries, and a value for each key"
    check(ok, "attend: Q, K and V", rule, sizes)
    S = Q / math.sqrt(Q.shape[-1]) @ K.mT
    A = masked_softmax(S, mask)
    return A @ V, A


def causal_mask(T: int, past: int = 0) -> Bool[Tensor, "T S"]:
    """Return the mask that hides the future: query t sees the keys up to t.

    Args:
        T: number of queries.
        past: number of keys before the first query; all queries see them.

    Example:
        >>> causal_mask(3).int().tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    check_whole("causal_mask: T", T, 1)
    check_whole("causal_mask: past", past, 0)
    return torch.ones(T, past + T, dtype=torch.bool).tril(past)


def _check_mask(who: str, mask: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not of truth values, or does not fit the scores."""
    what, got, hint = f"{who}: mask", tuple(mask.shape), "True means: may look."
    check(mask.dtype == torch.bool, what, "have truth values", mask.dtype, hint)
    axes = zip(got[::-1], shape[::-1], strict=False)
    fits = 2 <= len(got) <= len(shape) and got[-1] == shape[-1]
    fits = fits and all(have in (1, want) for have, want in axes)
    rule = f"fit the scores, of shape {tuple(shape)}"
    check(fits, what, rule, f"shape {got}", hint)


class MultiHeadAttention(nn.Module):
    r"""Multi-head attention: several attentions side by side (Vaswani et al. 2017).

    .. math::
        H_i &= \operatorname{attend}(X W^Q_i, Z W^K_i, Z W^V_i), \quad i = 1, \dots, h, \\
        Y &= [H_1, \dots, H_h]\, W^O

    The projections of all heads are one matrix, whose output is cut into :math:`h` parts.

    Equals ``torch.nn.MultiheadAttention`` with ``batch_first=True`` and the mask
    negated.

    Args:
        d_model: width of the inputs and of the output.
        num_heads: number of heads :math:`h`; divides ``d_model``.
        bias: whether the four projections add one.
        generator: source of the weights.

    Example:
        >>> X = torch.ones(1, 4, 6)  # equal keys get equal weights
        >>> Y, A = MultiHeadAttention(d_model=6, num_heads=2)(X, X)
        >>> A[0, 0, 0].detach()
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        bias: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_sizes("MultiHeadAttention", d_model=d_model, num_heads=num_heads)
        rule = f"be a multiple of num_heads = {num_heads}"
        check(d_model % num_heads == 0, "MultiHeadAttention: d_model", rule, d_model)
        self.d_model, self.num_heads = d_model, num_heads
        self.W_Q = Linear(d_model, d_model, bias, generator)
        self.W_K = Linear(d_model, d_model, bias, generator)
        self.W_V = Linear(d_model, d_model, bias, generator)
        self.W_O = Linear(d_model, d_model, bias, generator)

    def forward(
        self,
        X: Float[Tensor, "B Tq D"],
        Z: Float[Tensor, "B Tk D"],
        mask: Bool[Tensor, "*#B #Tq Tk"] | None = None,
    ) -> tuple[Float[Tensor, "B Tq D"], Float[Tensor, "B h Tq Tk"]]:
        """Let ``X`` look at ``Z``; self-attention is ``layer(X, X)``.

        Args:
            X: where queries come from.
            Z: where keys and values come from.
            mask: True where a query may look: one for all examples, or one for each.

        Returns:
            Outputs, and the weights of all heads.
        """
        self._check("X", X)
        return self.look(X, *self.remember(Z), mask)

    def remember(self, Z: Float[Tensor, "B Tk D"]) -> tuple[Heads, Heads]:
        """Return the keys and values of all heads, which queries can look at later."""
        self._check("Z", Z)
        return self._split(self.W_K(Z)), self._split(self.W_V(Z))

    def look(
        self,
        X: Float[Tensor, "B Tq D"],
        K: Float[Tensor, "B h Tk d"],
        V: Float[Tensor, "B h Tk d"],
        mask: Bool[Tensor, "*#B #Tq Tk"] | None = None,
    ) -> tuple[Float[Tensor, "B Tq D"], Float[Tensor, "B h Tq Tk"]]:
        """Let ``X`` look at keys and values; arguments and results as above."""
        self._check("X", X)
        if mask is not None:
            _check_mask("MultiHeadAttention", mask, (*X.shape[:2], K.shape[2]))
            mask = mask if mask.ndim == 2 else mask[:, None]
        H, A = attend(self._split(self.W_Q(X)), K, V, mask)
        return self.W_O(H.transpose(1, 2).flatten(2)), A

    def _split(self, X: Float[Tensor, "B T D"]) -> Heads:
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _check(self, name: str, X: Tensor) -> None:
        ok = X.ndim == 3 and X.shape[1] > 0 and X.shape[2] == self.d_model
        rule = f"have the axes (B, T, {self.d_model}) with at least one time"
        check(ok, f"MultiHeadAttention: {name}", rule, f"shape {tuple(X.shape)}")
