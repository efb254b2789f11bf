r"""Recurrent layers without a bend in the loop: all times at once, or one after another.

Each layer is a recurrence :math:`z_t = a_t \odot z_{t-1} + b_t`, whose factors may depend on
the input and never on the state. So :func:`dlcore.recurrence.scan.scan` computes all states in
parallel for training, and ``step`` one after the other for use.
"""

from math import pi
from typing import TypeAlias

from jaxtyping import Complex, Float, Int

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_shape, check_sizes, check_whole
from dlcore.recurrence.recurrent import check_run, length_mask, uniform
from dlcore.recurrence.scan import scan

__all__ = ["LRU", "LinearRecurrence", "MinGRU", "MinLSTM", "diagonalize", "ring"]

Sequences: TypeAlias = Float[Tensor, "B T D"]
Steps: TypeAlias = Float[Tensor, "B T H"] | Complex[Tensor, "B T H"]
State: TypeAlias = tuple[Float[Tensor, "B H"] | Complex[Tensor, "B H"]]


class LinearRecurrence(nn.Module):
    r"""A recurrent layer that is linear in its state; subclasses define a step.

    .. math:: z_t = a_t \odot z_{t-1} + b_t

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`z_t` has.

    Example:
        >>> layer, x = MinGRU(2, 3), torch.ones(1, 2, 2)
        >>> _, state = layer.step(x[:, 0])
        >>> h, _ = layer.step(x[:, 1], state)
        >>> torch.allclose(h, layer(x)[0][:, 1], atol=1e-6)  # all times at once
        True
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        check_sizes(type(self).__name__, inputs=inputs, hidden=hidden)
        self.inputs, self.hidden = inputs, hidden

    def steps(self, x: Sequences) -> tuple[Steps, Steps]:
        """Return the factors :math:`a_t` and what is added, :math:`b_t`."""
        raise NotImplementedError

    def read(self, z: Steps, x: Sequences) -> Float[Tensor, "B T K"]:
        """Return the outputs, given states and inputs: here, the states."""
        return z

    def forward(
        self,
        x: Sequences,
        lengths: Int[Tensor, "B"] | None = None,
        state: State | None = None,
    ) -> tuple[Float[Tensor, "B T K"], State]:
        """Run along sequences, all times at once.

        Args:
            x: the inputs.
            lengths: of the sequences; without them, all are as long as ``x``.
            state: at the start; without it, zeros.

        Returns:
            The outputs, zero behind the end of a sequence, and the state at its end.
        """
        self._check(x, state)
        if lengths is None:
            z = self._run(*self.steps(x), state)
            return self.read(z, x), (z[:, -1],)
        mask = length_mask(lengths, x.shape[1], type(self).__name__)[:, :, None]
        x = x.masked_fill(~mask, 0)
        a, b = self.steps(x)  # behind the end the state is kept: a = 1, b = 0
        z = self._run(a.masked_fill(~mask, 1), b.masked_fill(~mask, 0), state)
        return self.read(z, x) * mask, (z[:, -1],)

    def step(
        self, x: Float[Tensor, "B D"], state: State | None = None
    ) -> tuple[Float[Tensor, "B K"], State]:
        """Take one step: return the output, and the state to go on with."""
        x = x[:, None]
        self._check(x, state)
        a, b = self.steps(x)
        z = b if state is None else a * state[0][:, None] + b
        return self.read(z, x)[:, 0], (z[:, 0],)

    def _run(self, a: Tensor, b: Tensor, state: State | None) -> Tensor:
        if state is not None:
            first = a[:, :1] * state[0][:, None] + b[:, :1]
            b = torch.cat([first, b[:, 1:]], dim=1)
        return scan(a, b)

    def _check(self, x: Tensor, state: State | None) -> None:
        """Refuse what does not fit."""
        check_run(type(self).__name__, x, self.inputs, state, [self.hidden])


class MinGRU(LinearRecurrence):
    r"""A GRU whose gate and candidate do not see the state (Feng et al. 2024).

    .. math::
        u_t &= \sigma(V_u x_t + b_u) \\
        \tilde h_t &= V_h x_t + b_h \\
        h_t &= u_t \odot h_{t-1} + (1 - u_t) \odot \tilde h_t

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        generator: source of the weights, drawn uniformly between
            :math:`\pm 1 / \sqrt{\text{inputs}}`; biases are 0.

    Attributes:
        V: weights in blocks of ``hidden`` rows, for :math:`u` and :math:`\tilde h`.
        b: biases.

    Example:
        >>> zero, one = torch.zeros(1, 1), torch.ones(1, 1)
        >>> MinGRU(1, 1).step(zero, (one,))[0].item()  # u = 1/2, candidate 0
        0.5
    """

    blocks = 2

    def __init__(
        self, inputs: int, hidden: int, generator: Generator | None = None
    ) -> None:
        super().__init__(inputs, hidden)
        self.V = uniform(inputs, (self.blocks * hidden, inputs), generator)
        self.b = nn.Parameter(torch.zeros(self.blocks * hidden))

    def steps(self, x: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        u, candidate = (x @ self.V.T + self.b).chunk(2, dim=2)
        u = torch.sigmoid(u)
        return u, (1 - u) * candidate


class MinLSTM(MinGRU):
    r"""An LSTM whose gates and candidate do not see the state (Feng et al. 2024).

    .. math::
        f_t, i_t &= \sigma(V_{f,i} x_t + b_{f,i}) \\
        \tilde h_t &= V_h x_t + b_h \\
        h_t &= \frac{f_t}{f_t + i_t} \odot h_{t-1}
            + \frac{i_t}{f_t + i_t} \odot \tilde h_t

    The first weight is computed as :math:`\sigma(\log f_t - \log i_t)`, which cannot divide
    by zero. Blocks of rows are :math:`f, i, \tilde h`.

    Example:
        >>> layer = MinLSTM(1, 1)
        >>> layer.b.data = torch.tensor([0.0, 0.0, 3.0])  # f = i, candidate 3
        >>> layer.step(torch.zeros(1, 1), (torch.ones(1, 1),))[0].item()
        2.0
    """

    blocks = 3

    def steps(self, x: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        f, i, candidate = (x @ self.V.T + self.b).chunk(3, dim=2)
        log = nn.functional.logsigmoid
        kept = torch.sigmoid(log(f) - log(i))
        return kept, (1 - kept) * candidate


class LRU(LinearRecurrence):
    r"""The linear recurrent unit, with complex eigenvalues (Orvieto et al. 2023).

    .. math::
        \lambda &= \exp(-e^{\nu} + \mathrm{i} \phi) \\
        z_t &= \lambda \odot z_{t-1} + \gamma \odot B x_t \\
        y_t &= \operatorname{Re}(C z_t) + D x_t

    The paper trains :math:`\log \phi` in place of :math:`\phi`.

    Equals ``scipy.signal.lfilter``, a filter for each eigenvalue, with the same weights
    around it.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: complex numbers :math:`z_t` has.
        outputs: numbers :math:`y_t` has.
        r_min: radius of the ring of first eigenvalues, from inside.
        r_max: from outside, at most 1.
        phase: the largest angle of a first eigenvalue.
        generator: source of the weights.

    Attributes:
        nu, phi: parameters of the eigenvalues.
        log_gamma: :math:`\log \gamma`, at first :math:`\log \sqrt{1 - |\lambda|^2}`.
        B, C: complex weights as pairs of real ones, in a last axis of length 2.
        D: weights past the recurrence.

    Example:
        >>> layer = LRU(inputs=1, hidden=8, outputs=1)
        >>> bool((layer.eigenvalues.abs() < 1).all())  # states cannot explode
        True
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        r_min: float = 0.0,
        r_max: float = 1.0,
        phase: float = 2 * pi,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden)
        check_whole("LRU: outputs", outputs, 1)

        def normal(scale: float, *shape: int) -> nn.Parameter:
            draws = torch.randn(shape, generator=generator)
            return nn.Parameter(scale * draws)

        radius, angle = ring(hidden, r_min, r_max, phase, generator)
        self.nu = nn.Parameter((-radius.log()).log().float())
        self.phi = nn.Parameter(angle.float())
        self.log_gamma = nn.Parameter(0.5 * (1 - radius**2).log().float())
        self.B = normal((2 * inputs) ** -0.5, hidden, inputs, 2)
        self.C = normal(hidden**-0.5, outputs, hidden, 2)
        self.D = normal(inputs**-0.5, outputs, inputs)

    @property
    def eigenvalues(self) -> Complex[Tensor, "H"]:
        r"""The factors :math:`\lambda`, inside the unit circle whatever the parameters."""
        return torch.exp(torch.complex(-self.nu.exp(), self.phi))

    def steps(self, x: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        B = torch.view_as_complex(self.B)
        b = self.log_gamma.exp() * (x.to(B.dtype) @ B.T)
        return self.eigenvalues.expand_as(b), b

    def read(self, z: Tensor, x: Tensor) -> Tensor:  # noqa: D102
        return (z @ torch.view_as_complex(self.C).T).real + x @ self.D.T


def ring(
    count: int,
    r_min: float,
    r_max: float,
    phase: float = 2 * pi,
    generator: Generator | None = None,
) -> tuple[Float[Tensor, "H"], Float[Tensor, "H"]]:
    r"""Draw radii and angles of points, uniformly by area, from a part of a ring.

    .. math:: r^2 = r_{\min}^2 + u\, (r_{\max}^2 - r_{\min}^2), \qquad \phi = v\, \phi_{\max}

    with :math:`u, v` uniform in (0, 1), so that :math:`0 < r < 1`: the logarithms of
    :math:`r` and of :math:`-\log r` exist.

    Args:
        count: how many.
        r_min: the inner radius.
        r_max: the outer radius, at most 1.
        phase: the largest angle :math:`\phi_{\max}`.
        generator: source of the draws.

    Example:
        >>> radius, angle = ring(2, r_min=0.6, r_max=0.6)
        >>> radius
        tensor([0.6000, 0.6000], dtype=torch.float64)
    """
    check_whole("ring: count", count, 1)
    ok = 0 <= r_min <= r_max <= 1 and r_max > 0 and r_min < 1
    rule = "have 0 ≤ r_min ≤ r_max ≤ 1, and not both be 0 or 1"
    check(ok, "ring: radii", rule, f"{r_min} and {r_max}")
    u, v = torch.rand(2, count, generator=generator, dtype=torch.float64)
    u = u.clamp(1e-6, 1 - 1e-6)
    return (r_min**2 + u * (r_max**2 - r_min**2)).sqrt(), phase * v


def diagonalize(
    A: Float[Tensor, "N N"], B: Float[Tensor, "N D"], C: Float[Tensor, "K N"]
) -> tuple[Complex[Tensor, "N"], Complex[Tensor, "N D"], Complex[Tensor, "K N"]]:
    r"""Change the basis of a linear system so that its matrix is diagonal.

    With :math:`A = S \Lambda S^{-1}`, the system :math:`\Lambda, S^{-1} B, CS` has the same
    outputs as :math:`A, B, C`.

    Refused if the condition number of :math:`S` exceeds :math:`\varepsilon^{-1/2}` for the
    precision :math:`\varepsilon` of the numbers: then half of the digits are lost.

    Args:
        A: matrix of the states.
        B: weights of the inputs.
        C: weights of the outputs.

    Example:
        >>> A = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> values, B, C = diagonalize(A, torch.eye(2), torch.eye(2))
        >>> torch.allclose((C * values @ B).real, A, atol=1e-6)
        True
    """
    N = len(A)
    check_shape("diagonalize: A", A, N, N)
    check_shape("diagonalize: B", B, N, None)
    check_shape("diagonalize: C", C, None, N)
    values, S = torch.linalg.eig(A)
    condition, limit = float(torch.linalg.cond(S)), torch.finfo(A.dtype).eps ** -0.5
    rule = f"have eigenvectors of a condition number below {limit:.0e}"
    hint = "It is defective, or nearly so."
    check(condition < limit, "diagonalize: A", rule, f"{condition:.0e}", hint)
    return values, torch.linalg.solve(S, B.to(S.dtype)), C.to(S.dtype) @ S
