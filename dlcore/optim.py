r"""Optimizers: how a gradient becomes a step, in order of increasing complexity.

An optimizer changes its parameters in place. A parameter is an array, whose gradient is
handed to :meth:`Optimizer.step`; or anything with ``data`` and ``grad``, such as a tensor
of ``dlcore.autograd`` or of PyTorch, which brings its own. Nothing here imports NumPy or
PyTorch: the rules are written with operators that both understand.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from math import inf, sqrt
from typing import Any

from dlcore._check import check


class Optimizer:
    r"""Change parameters by their gradients; subclasses say how in ``update``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        weight_decay: :math:`\lambda`; every gradient becomes
            :math:`g + \lambda\theta`, that of the cost with
            :math:`\tfrac{\lambda}{2} \lVert\theta\rVert^2` added.
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float, weight_decay: float = 0.0
    ) -> None:
        self.parameters = list(parameters)
        self._check(bool(self.parameters), "parameters", "not be empty", "none")
        self._check(0 < lr < inf, "lr", "be positive and finite", lr)
        self._check(
            0 <= weight_decay < inf,
            "weight_decay",
            "be finite and not negative",
            weight_decay,
        )
        self.lr, self.weight_decay, self.t = lr, weight_decay, 0

    def step(self, gradients: Sequence[Any] | None = None) -> None:
        """Take one step.

        Args:
            gradients: one for each parameter; without them, those that the parameters
                carry, and parameters without one stay where they are.
        """
        if gradients is None:
            carry = all(hasattr(p, "grad") for p in self.parameters)
            rule = "be given where parameters are arrays"
            self._check(carry, "gradients", rule, "none")
            gradients = [p.grad for p in self.parameters]
        values = [_value(p) for p in self.parameters]
        ours = [tuple(p.shape) for p in values]
        theirs = [
            shape if g is None else tuple(g.shape)
            for shape, g in zip(ours, gradients, strict=False)
        ]
        same = len(gradients) == len(ours) and ours == theirs
        self._check(same, "gradients", f"have the shapes {ours}", theirs)
        self.t += 1
        for i, (p, g) in enumerate(zip(values, gradients, strict=True)):
            if g is not None:
                self.update(i, p, self.decay(p, g))

    def decay(self, p: Any, g: Any) -> Any:
        """Return the gradient with that of the penalty on ``p``."""
        return g + self.weight_decay * p if self.weight_decay else g

    def update(self, i: int, p: Any, g: Any) -> None:
        """Change parameter number ``i``, the array ``p``, given its gradient ``g``."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget the gradients that the parameters carry."""
        for p in self.parameters:
            p.grad = None

    def zeros(self) -> list[Any]:
        """Return an array of zeros for each parameter, to remember something in."""
        states = [deepcopy(_value(p)) for p in self.parameters]
        for state in states:
            state[...] = 0
        return states

    def _check(self, ok: bool, what: str, must: str, got: object) -> None:
        check(ok, f"{type(self).__name__}: {what}", must, got)


class GD(Optimizer):
    r"""Gradient descent, :math:`\theta \leftarrow \theta - \eta g`."""

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        p -= self.lr * g


class Momentum(Optimizer):
    r"""The heavy ball (Polyak 1964).

    .. math::
        m &\leftarrow \beta m + g \\
        \theta &\leftarrow \theta - \eta m

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        beta: what is kept of the speed, in [0, 1).
        weight_decay: :math:`\lambda` of the penalty.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        beta: float = 0.9,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._check(0 <= beta < 1, "beta", "lie in [0, 1)", beta)
        self.beta, self.m = beta, self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        m = self.m[i]
        m *= self.beta
        m += g
        p -= self.lr * m


class Adam(Optimizer):
    r"""Adam (Kingma and Ba 2015, algorithm 1).

    .. math::
        m &\leftarrow \beta_1 m + g,   & \hat m &= m / \textstyle\sum_{k<t} \beta_1^k \\
        v &\leftarrow \beta_2 v + g^2, & \hat v &= v / \textstyle\sum_{k<t} \beta_2^k \\
        \theta &\leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \varepsilon)

    The paper's moments are :math:`(1 - \beta_1) m` and :math:`(1 - \beta_2) v`, and its
    corrections :math:`1 - \beta^t = (1 - \beta) \sum_{k<t} \beta^k`; its :math:`\hat m` and
    :math:`\hat v` are these.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        betas: decay rates :math:`(\beta_1, \beta_2)`, each in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda` of the penalty.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        inside = all(0 <= b < 1 for b in betas)
        self._check(inside, "betas", "lie in [0, 1)", betas)
        self._check(0 < eps < inf, "eps", "be positive and finite", eps)
        self.betas, self.eps = betas, eps
        self.m, self.v = self.zeros(), self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:
        """One line per line of the formula."""
        beta1, beta2 = self.betas
        m, v = self.m[i], self.v[i]
        m *= beta1
        m += g
        v *= beta2
        v += g * g
        root = v**0.5
        root /= sqrt(_weights(beta2, self.t))
        root += self.eps
        step = m / root
        step *= self.lr / _weights(beta1, self.t)
        p -= step


def _value(p: Any) -> Any:
    """Return the array of a parameter."""
    return p.data if hasattr(p, "grad") else p


def _weights(beta: float, t: int) -> float:
    r"""Return :math:`\sum_{k<t} \beta^k`, the weights of a decaying sum."""
    return (1 - beta**t) / (1 - beta)
