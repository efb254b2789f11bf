r"""The company of words: who stands beside whom how often, and what that tells.

A token is a whole number from 0 to C − 1; its company are the tokens at most ``r`` places away.
"""

from typing import NamedTuple

from jaxtyping import Float, Int64
from scipy.sparse.linalg import svds

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import check, check_shape, check_whole
from dlcore.recurrence.vocabulary import check_indices

__all__ = ["Factors", "cooccurrence", "factor", "pairs", "pmi", "ppmi", "windows"]


def windows(
    tokens: Int64[Tensor, "T"], r: int
) -> tuple[Int64[Tensor, "N"], Int64[Tensor, "N K"]]:
    """Return each word that has ``r`` neighbours on both sides, and these neighbours.

    Example:
        >>> words, around = windows(torch.tensor([5, 6, 7, 8]), 1)
        >>> words.tolist(), around.tolist()
        ([6, 7], [[5, 7], [6, 8]])
    """
    _check_window("windows", tokens, r, 2 * r + 1)
    cut = tokens.unfold(0, 2 * r + 1, 1)
    return cut[:, r], torch.cat([cut[:, :r], cut[:, r + 1 :]], dim=1)


def pairs(
    tokens: Int64[Tensor, "T"], r: int
) -> tuple[Int64[Tensor, "N"], Int64[Tensor, "N"]]:
    """Return all pairs of a word and a neighbour at most ``r`` places away, both ways.

    Example:
        >>> words, around = pairs(torch.tensor([5, 6, 7]), 1)
        >>> words.tolist(), around.tolist()
        ([5, 6, 6, 7], [6, 7, 5, 6])
    """
    _check_window("pairs", tokens, r, 2)
    steps = range(1, min(r, len(tokens) - 1) + 1)
    left = torch.cat([tokens[:-s] for s in steps])
    right = torch.cat([tokens[s:] for s in steps])
    return torch.cat([left, right]), torch.cat([right, left])


def cooccurrence(tokens: Int64[Tensor, "T"], size: int, r: int) -> Float[Tensor, "C C"]:
    """Count how often each pair of words stands at most ``r`` places apart.

    The table of counts is symmetric.

    Args:
        tokens: the text.
        size: number ``C`` of words in the vocabulary.
        r: how far company reaches.

    Example:
        >>> cooccurrence(torch.tensor([0, 1, 0]), 2, 1).tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    check_indices("cooccurrence: tokens", tokens, size)
    words, company = pairs(tokens, r)
    cells = torch.bincount(words * size + company, minlength=size * size)
    return cells.view(size, size).to(torch.get_default_dtype())


def pmi(counts: Float[Tensor, "A C"]) -> Float[Tensor, "A C"]:
    r"""Return the pointwise mutual information of words and the words around them.

    It is :math:`\log \frac{n\, n_{vc}}{n_v\, n_c}`; minus infinity for pairs never
    seen.

    Args:
        counts: :math:`n_{vc}`, how often the word of a row has the company of a column.

    Example:
        >>> pmi(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))  # log 4/3 and log 2/3
        tensor([[ 0.2877, -0.4055],
                [-0.4055,  0.2877]])
    """
    check_shape("pmi: counts", counts, None, None)
    check(bool((counts >= 0).all()), "pmi: counts", "not be negative", counts.min())
    rows = counts.sum(dim=1, keepdim=True)
    columns = counts.sum(dim=0, keepdim=True)
    ok = bool((rows > 0).all() and (columns > 0).all())
    rule = "have a positive entry in every row and column"
    check(ok, "pmi: counts", rule, "zeros", "Leave out words that never occur.")
    return torch.log(counts * counts.sum() / (rows * columns))


def ppmi(counts: Float[Tensor, "A C"], shift: float = 0.0) -> Float[Tensor, "A C"]:
    r"""Return the positive pointwise mutual information: negative values become zero.

    .. math:: \max(\text{PMI} - \text{shift}, 0)

    Args:
        counts: as for :func:`pmi`.
        shift: is subtracted first.

    Example:
        >>> ppmi(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([[0.2877, 0.0000],
                [0.0000, 0.2877]])
    """
    return torch.clamp(pmi(counts) - shift, min=0)


class Factors(NamedTuple):
    r"""A truncated singular value decomposition.

    .. math:: M \approx U \operatorname{diag}(d) V^\top

    Attributes:
        U: left singular vectors, as columns.
        d: the largest singular values, in order.
        V: right singular vectors, as columns.

    Example:
        >>> M = torch.tensor([[3.0, 0.0], [0.0, 2.0]])
        >>> U, d, V = factor(M, 2, torch.Generator())
        >>> torch.allclose(U * d @ V.T, M)
        True
    """

    U: Float[Tensor, "A D"]
    d: Float[Tensor, "D"]
    V: Float[Tensor, "C D"]


def factor(M: Float[Tensor, "A C"], D: int, generator: Generator) -> Factors:
    """Find the ``D`` largest singular values of a large matrix, and their vectors.

    They come from products of the matrix with vectors (the method of Lanczos, as in
    ARPACK), to the accuracy of the numbers, in far less time than all of them would take.

    Args:
        M: the matrix.
        D: number of singular values.
        generator: source of the first vector; the result does not depend on it but for
            signs.

    Example:
        >>> M = torch.diag(torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64))
        >>> factor(M, 2, torch.Generator().manual_seed(0)).d.numpy().round(6).tolist()
        [3.0, 2.0]
    """
    check_whole("factor: D", D, 1)
    least = min(M.shape)
    check(least >= D, "factor: D", f"be at most {least}, the rank of M", D)
    if least == D:
        U, d, Vt = torch.linalg.svd(M, full_matrices=False)
        return Factors(U, d, Vt.T)
    start = torch.randn(least, generator=generator, dtype=M.dtype)
    found = svds(M.numpy(), D, v0=start.numpy())
    order = found[1].argsort()[::-1].copy()
    U, d, Vt = (torch.from_numpy(part.copy()) for part in found)
    return Factors(U[:, order], d[order], Vt[order].T)


def _check_window(who: str, tokens: Tensor, r: int, least: int) -> None:
    """Refuse texts that are shorter than a window."""
    check_whole(f"{who}: r", r, 1)
    ok, got = tokens.ndim == 1 and len(tokens) >= least, f"shape {tuple(tokens.shape)}"
    check(ok, f"{who}: tokens", f"be a row of {least} or more", got)
