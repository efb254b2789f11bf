r"""Backpropagation through time, by hand, and the products of Jacobians behind it.

All functions are about :math:`h_t = \varphi(U h_{t-1} + V x_t + b)`. Adjoints are those of
a cost :math:`J`: :math:`p_t = \partial J / \partial h_t`, and :math:`\delta_t` by the sum
inside :math:`\varphi`.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import check, check_shape, check_whole
from dlcore.recurrence.recurrent import check_run

__all__ = [
    "NONLINEARITIES",
    "Gradients",
    "Nonlinearity",
    "bptt",
    "jacobians",
    "lyapunov",
    "norms",
    "orthogonal",
    "products",
    "states",
]


class Nonlinearity(NamedTuple):
    r"""An activation function whose derivative can be computed from its value.

    Attributes:
        phi: the function :math:`\varphi`.
        slope: :math:`\varphi'(z)`, given :math:`\varphi(z)`.
        steepest: the largest slope :math:`\alpha`.

    Example:
        >>> tanh = NONLINEARITIES["tanh"]
        >>> tanh.slope(tanh.phi(torch.tensor(0.0))).item()
        1.0
        >>> NONLINEARITIES["logistic"].steepest
        0.25
    """

    phi: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    steepest: float


#: Activation functions by name: identity, tanh, relu and logistic.
NONLINEARITIES = {
    "identity": Nonlinearity(lambda z: z, torch.ones_like, 1.0),
    "tanh": Nonlinearity(torch.tanh, lambda h: 1 - h * h, 1.0),
    "relu": Nonlinearity(torch.relu, lambda h: (h > 0).to(h.dtype), 1.0),
    "logistic": Nonlinearity(torch.sigmoid, lambda h: h * (1 - h), 0.25),
}


class Gradients(NamedTuple):
    """Derivatives of a cost by the weights and inputs of a recurrent network.

    Attributes:
        U: by the weights of the state.
        V: by the weights of the input.
        b: by the biases.
        x: by the inputs.
        start: by the first state :math:`h_0`.

    Example:
        >>> one, x = torch.ones(1, 1), torch.full((1, 1, 1), 3.0)
        >>> h, linear = torch.ones(1, 2, 1), NONLINEARITIES["identity"]
        >>> g = bptt(one, one, x, h, one[None], linear)
        >>> g.U.item(), g.V.item(), g.b.item()
        (1.0, 3.0, 1.0)
    """

    U: Float[Tensor, "H H"]
    V: Float[Tensor, "H D"]
    b: Float[Tensor, "H"]
    x: Float[Tensor, "B T D"]
    start: Float[Tensor, "B H"]


def states(
    U: Float[Tensor, "H H"],
    V: Float[Tensor, "H D"],
    b: Float[Tensor, "H"],
    x: Float[Tensor, "B T D"],
    nonlinearity: Nonlinearity = NONLINEARITIES["tanh"],
    start: Float[Tensor, "B H"] | None = None,
) -> Float[Tensor, "B S H"]:
    r"""Return the hidden states :math:`h_0, \dots, h_T` of a simple recurrent network.

    .. math:: h_t = \varphi(U h_{t-1} + V x_t + b)

    Equals ``torch.nn.RNN`` with ``batch_first=True``, for tanh and from :math:`h_1` on.

    Args:
        U: weights of the state.
        V: weights of the input.
        b: biases.
        x: the inputs.
        nonlinearity: the activation function :math:`\varphi`.
        start: :math:`h_0`; without it, zero.

    Example:
        >>> U, V, x = torch.full((1, 1), 0.5), torch.ones(1, 1), torch.ones(1, 3, 1)
        >>> linear = NONLINEARITIES["identity"]
        >>> states(U, V, torch.zeros(1), x, linear).flatten().tolist()
        [0.0, 1.0, 1.5, 1.75]
    """
    _check_weights("states", U, V, x)
    check_shape("states: b", b, len(U))
    if start is not None:
        check_shape("states: start", start, len(x), len(U))
    h = [x.new_zeros(len(x), len(U)) if start is None else start]
    for t in range(x.shape[1]):
        h.append(nonlinearity.phi(h[-1] @ U.T + x[:, t] @ V.T + b))
    return torch.stack(h, dim=1)


def bptt(
    U: Float[Tensor, "H H"],
    V: Float[Tensor, "H D"],
    x: Float[Tensor, "B T D"],
    h: Float[Tensor, "B S H"],
    local: Float[Tensor, "B T H"],
    nonlinearity: Nonlinearity = NONLINEARITIES["tanh"],
    block: int | None = None,
) -> Gradients:
    r"""Return the gradients of a recurrent network by backpropagation through time.

    .. math::
        p_t &= g_t + U^\top \delta_{t+1} \\
        \delta_t &= \varphi'(z_t) \odot p_t \\
        \nabla_U J = \sum_t \delta_t h_{t-1}^\top, \quad
        \nabla_V J &= \sum_t \delta_t x_t^\top, \quad
        \nabla_b J = \sum_t \delta_t

    Equals ``torch.autograd.grad`` of a cost of these states, if nothing is truncated.

    Args:
        U: weights of the state.
        V: weights of the input.
        x: the inputs.
        h: the states :math:`h_0, \dots, h_T`, of :func:`states`.
        local: :math:`g_t`, the derivative of the cost by :math:`h_t` on the direct way,
            not through later states.
        nonlinearity: the activation function.
        block: truncate: nothing is sent back over the border between two blocks of so
            many steps. Without it, all the way.

    Example:
        >>> U, V, x = torch.full((1, 1), 0.5), torch.ones(1, 1), torch.ones(1, 2, 1)
        >>> h, g = torch.tensor([[[0.0], [1.0], [1.5]]]), torch.tensor([[[0.0], [1.0]]])
        >>> bptt(U, V, x, h, g, NONLINEARITIES["identity"]).V.item()  # x_2 + u x_1
        1.5
    """
    _check_weights("bptt", U, V, x)
    B, T, _ = x.shape
    check_shape("bptt: h", h, B, T + 1, len(U), hint="The states begin with h_0.")
    check_shape("bptt: local", local, B, T, len(U))
    if block is not None:
        check_whole("bptt: block", block, 1)
    slopes = nonlinearity.slope(h[:, 1:])
    deltas = []
    delta = torch.zeros_like(h[:, 0])
    for t in reversed(range(T)):
        if block is not None and (t + 1) % block == 0:
            delta = torch.zeros_like(delta)
        p = local[:, t] + delta @ U
        delta = slopes[:, t] * p
        deltas.append(delta)
    d = torch.stack(deltas[::-1], dim=1)
    return Gradients(
        U=torch.einsum("bti,btj->ij", d, h[:, :-1]),
        V=torch.einsum("bti,btj->ij", d, x),
        b=d.sum(dim=(0, 1)),
        x=d @ V,
        start=delta @ U,
    )


def jacobians(
    U: Float[Tensor, "H H"],
    h: Float[Tensor, "B S H"],
    nonlinearity: Nonlinearity = NONLINEARITIES["tanh"],
) -> Float[Tensor, "B T H H"]:
    r"""Return the Jacobian matrix of each step of a recurrent network.

    .. math:: \partial h_t / \partial h_{t-1} = \operatorname{diag}(\varphi'(z_t))\, U

    Args:
        U: weights of the state.
        h: the states :math:`h_0, \dots, h_T`, of :func:`states`.
        nonlinearity: the activation function.

    Example:
        >>> h = torch.tensor([[[0.0], [0.0], [0.5]]])
        >>> jacobians(torch.tensor([[2.0]]), h).flatten().tolist()  # 2 (1 - h²)
        [2.0, 1.5]
    """
    ok = h.ndim == 3 and h.shape[1] > 1 and U.shape == (h.shape[2],) * 2
    rule = "be states (B, T + 1, H) for a square U of that size"
    check(ok, "jacobians: h", rule, f"{tuple(h.shape)}, {tuple(U.shape)}")
    return nonlinearity.slope(h[:, 1:])[..., None] * U


def products(A: Float[Tensor, "B T H H"]) -> Float[Tensor, "B S H H"]:
    r"""Return the derivatives of the last state by each of the states before it.

    .. math:: \partial h_T / \partial h_{T-k} = A_T A_{T-1} \cdots A_{T-k+1}

    Args:
        A: the Jacobians :math:`A_1, \dots, A_T` of the steps, of :func:`jacobians`.

    Returns:
        The products for the lags :math:`k = 0, \dots, T`; later factors on the left.

    Example:
        >>> products(torch.tensor([2.0, 3.0]).view(1, 2, 1, 1)).flatten().tolist()
        [1.0, 3.0, 6.0]
    """
    check_shape("products: A", A, None, None, A.shape[-1], A.shape[-1])
    P = [torch.eye(A.shape[2], dtype=A.dtype).expand(len(A), -1, -1)]
    for t in reversed(range(A.shape[1])):
        P.append(P[-1] @ A[:, t])
    return torch.stack(P, dim=1)


def norms(P: Float[Tensor, "B S H H"]) -> Float[Tensor, "B S"]:
    """Return the spectral norm, the largest singular value, of each matrix.

    Example:
        >>> P = torch.diag(torch.tensor([3.0, -4.0]))
        >>> round(norms(P[None, None]).item(), 3)
        4.0
    """
    check_shape("norms: P", P, None, None, None, None)
    return torch.linalg.matrix_norm(P, 2)


def lyapunov(A: Float[Tensor, "T H H"]) -> Float[Tensor, "H"]:
    r"""Return the Lyapunov exponents of a product of matrices, in nats per step.

    They tell how fast :math:`A_T \cdots A_1` stretches, direction by direction.

    The product is never formed: with :math:`Q_0 = I` and the QR decompositions
    :math:`A_t Q_{t-1} = Q_t R_t`, it is :math:`Q_T R_T \cdots R_1`, and the numbers are
    :math:`\frac1T \sum_t \log |(R_t)_{ii}|`.

    Args:
        A: one matrix per step.

    Example:
        >>> A = torch.diag(torch.tensor([2.0, 0.5])).expand(5, 2, 2)
        >>> lyapunov(A)  # log 2 and -log 2
        tensor([ 0.6931, -0.6931])
    """
    ok = A.ndim == 3 and len(A) > 0 and A.shape[1] == A.shape[2]
    check(ok, "lyapunov: A", "have the axes (T, H, H), T > 0", tuple(A.shape))
    Q = torch.eye(A.shape[1], dtype=A.dtype)
    total = torch.zeros(A.shape[1], dtype=A.dtype)
    for step in A:
        Q, R = torch.linalg.qr(step @ Q)
        total = total + R.diagonal().abs().log()
    return total / len(A)


def orthogonal(H: int, generator: Generator) -> Float[Tensor, "H H"]:
    """Draw a random orthogonal matrix, uniformly (Haar), in double precision.

    Example:
        >>> Q = orthogonal(3, torch.Generator().manual_seed(0))
        >>> torch.allclose(Q @ Q.T, torch.eye(3, dtype=torch.float64))
        True
    """
    check_whole("orthogonal: H", H, 1)
    draws = torch.randn(H, H, dtype=torch.float64, generator=generator)
    Q, R = torch.linalg.qr(draws)
    return Q * R.diagonal().sign()


def _check_weights(who: str, U: Tensor, V: Tensor, x: Tensor) -> None:
    """Refuse weights and inputs that do not fit."""
    check_shape(f"{who}: U", U, len(U), len(U))
    check_shape(f"{who}: V", V, len(U), None)
    check_run(who, x, V.shape[1], None, [])
