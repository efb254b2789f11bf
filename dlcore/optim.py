r"""Optimizers: how a gradient becomes a step, in order of increasing complexity.

An optimizer changes the arrays that it was given, in place.
"""

from collections.abc import Sequence
from math import inf

from numpy import ndarray

from dlcore._check import check


class Optimizer:
    """Change parameters by their gradients; subclasses say how in ``update``."""

    def __init__(self, parameters: Sequence[ndarray], lr: float) -> None:
        self.parameters = list(parameters)
        name = type(self).__name__
        check(
            bool(self.parameters), f"{name}: parameters", "not be empty", "none"
        )
        check(0 < lr < inf, f"{name}: lr", "be positive and finite", lr)
        self.lr, self.t = lr, 0

    def step(self, gradients: Sequence[ndarray]) -> None:
        """Take one step with one gradient for each parameter."""
        ours = [p.shape for p in self.parameters]
        theirs = [g.shape for g in gradients]
        name = type(self).__name__
        check(
            ours == theirs,
            f"{name}: gradients",
            f"have the shapes {ours}",
            theirs,
        )
        self.t += 1
        for i, (parameter, g) in enumerate(
            zip(self.parameters, gradients, strict=True)
        ):
            self.update(i, parameter, g)

    def update(self, i: int, parameter: ndarray, g: ndarray) -> None:
        """Change parameter number ``i``, given its gradient ``g``."""
        raise NotImplementedError


class GD(Optimizer):
    r"""Gradient descent, :math:`\theta \leftarrow \theta - \eta g`."""

    def update(self, i: int, parameter: ndarray, g: ndarray) -> None:  # noqa: D102
        parameter -= self.lr * g


class Adam(Optimizer):
    r"""Adam (Kingma and Ba 2015, algorithm 1).

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g,   & \hat m &= m / (1 - \beta_1^t) \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2, & \hat v &= v / (1 - \beta_2^t) \\
        \theta &\leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \varepsilon)

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        betas: decay rates :math:`(\beta_1, \beta_2)`, each in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
    """

    def __init__(
        self,
        parameters: Sequence[ndarray],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, lr)
        check(
            all(0 <= b < 1 for b in betas),
            "Adam: betas",
            "lie in [0, 1)",
            betas,
        )
        check(0 < eps < inf, "Adam: eps", "be positive and finite", eps)
        self.betas, self.eps = betas, eps
        self.m = [0 * p for p in self.parameters]
        self.v = [0 * p for p in self.parameters]

    def update(self, i: int, parameter: ndarray, g: ndarray) -> None:
        """One line per line of the formula."""
        beta1, beta2 = self.betas
        m = self.m[i] = beta1 * self.m[i] + (1 - beta1) * g
        v = self.v[i] = beta2 * self.v[i] + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**self.t)
        v_hat = v / (1 - beta2**self.t)
        parameter -= self.lr * m_hat / (v_hat**0.5 + self.eps)
