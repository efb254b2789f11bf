r"""Symmetries: other weights, same network.

Each function returns a new network that computes the same as the one given. Hidden layers
count from 1.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_shape, check_whole
from dlcore.feedforward.activations import identity, leaky_relu, relu, tanh
from dlcore.feedforward.network import Dense, Network

__all__ = ["is_permutation", "permute_hidden", "scale_hidden"]

_HOMOGENEOUS = (identity, relu, leaky_relu)  # phi(d z) = d phi(z) for d > 0
_ODD = (identity, tanh)  # phi(-z) = -phi(z)


def is_permutation(P: Float[ndarray, "m k"]) -> bool:
    """Tell whether a matrix is a permutation: one 1 in each row and column, else zeros.

    Example:
        >>> is_permutation(np.eye(3)[[2, 0, 1]]), is_permutation(np.ones((2, 2)))
        (True, False)
    """
    return bool(
        P.ndim == 2
        and P.shape[0] == P.shape[1] > 0
        and ((P == 0) | (P == 1)).all()
        and (P.sum(axis=0) == 1).all()
        and (P.sum(axis=1) == 1).all()
    )


def permute_hidden(network: Network, layer: int, order: Sequence[int]) -> Network:
    r"""Number the units of a hidden layer in another order.

    With the permutation matrix :math:`P` that has a 1 in row :math:`j` and column
    ``order[j]``, :math:`(W, b)` become :math:`(PW, Pb)` and the next layer's
    :math:`W` becomes :math:`W P^\top`.

    Args:
        network: the network, which stays as it is.
        layer: the hidden layer, counted from 1.
        order: the old number of each unit.

    Example:
        >>> first, last = np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]])
        >>> net = Network([Dense(first, np.zeros(2), relu), Dense(last, np.zeros(1))])
        >>> other = permute_hidden(net, 1, [1, 0])
        >>> [layer.W.tolist() for layer in other.layers]  # 1·3 + 2·4 = 2·4 + 1·3
        [[[2.0], [1.0]], [[4.0, 3.0]]]
    """
    changed, here, above = _hidden("permute_hidden", network, layer)
    m, whole = len(here.b), all(hasattr(j, "__index__") for j in order)
    ok = whole and sorted(order) == list(range(m))
    check(ok, "permute_hidden: order", f"hold each of 0 … {m - 1} once", order)
    here.W, here.b = here.W[list(order)], here.b[list(order)]
    above.W = above.W[:, list(order)]
    return changed


def scale_hidden(network: Network, layer: int, d: Float[ndarray, "m"]) -> Network:
    r"""Scale hidden units: incoming weights by :math:`d_j`, outgoing by its inverse.

    With :math:`D = \operatorname{diag}(d)`, :math:`(W, b)` become :math:`(DW, Db)` and the
    next layer's :math:`W` becomes :math:`W D^{-1}`. This leaves the function alone if
    :math:`\varphi(d_j z) = d_j \varphi(z)`: for positive :math:`d_j` and the ReLU, and for
    :math:`d_j = \pm 1` and tanh.

    Args:
        network: the network, which stays as it is.
        layer: the hidden layer, counted from 1.
        d: a factor :math:`d_j` for each unit.

    Example:
        >>> first, last = np.array([[3.0]]), np.array([[4.0]])
        >>> net = Network([Dense(first, np.zeros(1), relu), Dense(last, np.zeros(1))])
        >>> other = scale_hidden(net, 1, np.array([2.0]))
        >>> [layer.W.tolist() for layer in other.layers]  # 3 · 4 = 6 · 2
        [[[6.0]], [[2.0]]]
    """
    changed, here, above = _hidden("scale_hidden", network, layer)
    check_shape("scale_hidden: d", d, len(here.b), hint="One factor for each unit.")
    ok = bool((np.isfinite(d) & (d != 0)).all())
    check(ok, "scale_hidden: d", "be finite and not zero", d)
    commutes = (bool((d > 0).all()) or here.phi in _ODD) and (
        bool((np.abs(d) == 1).all()) or here.phi in _HOMOGENEOUS
    )
    name, hint = getattr(here.phi, "name", here.phi), "ReLU: d > 0, tanh: ±1."
    check(commutes, "scale_hidden: d", f"commute with {name}", d, hint)
    here.W, here.b = d[:, None] * here.W, d * here.b
    above.W = above.W / d
    return changed


def _hidden(who: str, network: Network, layer: int) -> tuple[Network, Dense, Dense]:
    """Copy the network; return it with the hidden layer and the one above."""
    check_whole(f"{who}: layer", layer, 1)
    hidden = len(network.layers) - 1
    check(layer <= hidden, f"{who}: layer", f"be one of 1 … {hidden}", layer)
    kinds = {type(one) for one in network.layers}
    check(kinds == {Dense}, f"{who}: network", "have Dense layers only", kinds)
    changed = Network(
        [Dense(one.W.copy(), one.b.copy(), one.phi) for one in network.layers]
    )
    return changed, changed.layers[layer - 1], changed.layers[layer]
