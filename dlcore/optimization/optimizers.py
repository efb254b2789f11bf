r"""Optimizers: how a gradient becomes a step, in order of increasing complexity.

An optimizer changes its parameters in place. A parameter is an array, whose gradient is
handed to :meth:`Optimizer.step`; or anything with ``data`` and ``grad``, such as a tensor
of ``dlcore.optimization.autograd`` or of PyTorch, which brings its own. Nothing here
computes with NumPy's or PyTorch's functions: the rules are written with operators that
both understand. Where PyTorch has the same rule, both take the same steps, also with the
constants that they assume. Gradients are taken as they come: in a rule that adds up
squares, one whose square overflows stops its coordinate for good.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from math import inf, sqrt
from typing import Any

from dlcore.checks import check, check_between, check_positive

__all__ = [
    "GD",
    "AMSGrad",
    "AdaGrad",
    "AdaMax",
    "Adadelta",
    "Adam",
    "AdamW",
    "Lion",
    "Momentum",
    "NAdam",
    "Nesterov",
    "Optimizer",
    "RMSProp",
    "clip",
    "convex_momentum",
]


class Optimizer:
    r"""Change parameters by their gradients; subclasses say how in ``update``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        weight_decay: :math:`\lambda`; every gradient becomes
            :math:`g + \lambda\theta`, that of the cost with
            :math:`\tfrac{\lambda}{2} \lVert\theta\rVert^2` added. Rules that are
            ``decoupled`` shrink :math:`\theta` by :math:`1 - \eta\lambda` instead.

    Further arguments of a rule are the constants of its formula. Of the sums that it
    remembers, ``beta``, ``alpha``, ``rho`` and the two ``betas`` say how much is kept,
    each in [0, 1); ``eps``, the :math:`\varepsilon`, keeps a division finite.

    Attributes:
        t: how many steps each parameter has taken.
        state: the arrays that are remembered between steps.

    Example:
        >>> class SignDescent(Optimizer):
        ...     def update(self, i, p, g):
        ...         p -= self.lr * np.sign(g)
        >>> p = np.zeros(2)
        >>> SignDescent([p], lr=0.1).step([np.array([5.0, -3.0])])
        >>> p.tolist()
        [-0.1, 0.1]
    """

    decoupled = False
    alpha: float
    beta: Any
    betas: tuple[float, float]
    eps: float
    rho: float

    def __init__(
        self, parameters: Iterable[Any], lr: float, weight_decay: float = 0.0
    ) -> None:
        who, self.parameters = type(self).__name__, list(parameters)
        kinds = [_kind(_value(p)) for p in self.parameters]
        ok = len(kinds) > 0 and all("float" in kind for kind in kinds)
        check(ok, f"{who}: parameters", "be arrays of floating point", kinds)
        once = len({id(p) for p in self.parameters}) == len(self.parameters)
        check(once, f"{who}: parameters", "differ", "the same one twice")
        check_positive(f"{who}: lr", lr)
        check_between(f"{who}: weight_decay", weight_decay, 0, inf, "[)")
        self.lr, self.weight_decay = lr, weight_decay
        self.t = [0] * len(self.parameters)
        self.state: list[Any] = []

    def step(self, gradients: Iterable[Any] | None = None) -> None:
        """Take one step.

        Args:
            gradients: one for each parameter; without them, those that the parameters
                carry, and parameters without one stay where they are.
        """
        what = f"{type(self).__name__}: gradients"
        if gradients is None:
            carry = all(hasattr(p, "grad") for p in self.parameters)
            check(carry, what, "be given where parameters are arrays", "none")
            gradients = [p.grad for p in self.parameters]
        gradients, values = list(gradients), [_value(p) for p in self.parameters]
        if len(gradients) != len(values) or not all(
            g is None or getattr(g, "shape", None) == p.shape
            for p, g in zip(values, gradients, strict=True)
        ):
            theirs = [getattr(g, "shape", type(g).__name__) for g in gradients]
            must = f"be arrays of the shapes {[p.shape for p in values]}"
            check(False, what, must, theirs)
        for i, (p, g) in enumerate(zip(values, gradients, strict=True)):
            if g is not None:
                self.t[i] += 1
                self.update(i, p, self.decay(p, g))

    def decay(self, p: Any, g: Any) -> Any:
        """Return the gradient with that of the penalty on ``p``; or shrink ``p``."""
        if not self.weight_decay:
            return g
        if self.decoupled:
            p *= 1 - self.lr * self.weight_decay
            return g
        return g + self.weight_decay * p

    def update(self, i: int, p: Any, g: Any) -> None:
        """Change parameter number ``i``, the array ``p``, given its gradient ``g``."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget the gradients that the parameters carry; arrays carry none."""
        for p in self.parameters:
            if hasattr(p, "grad"):
                p.grad = None

    def zeros(self) -> list[Any]:
        """Return an array of zeros for each parameter, to remember something in."""
        states = [deepcopy(_value(p)) for p in self.parameters]
        for state in states:
            state[...] = 0
        self.state += states
        return states

    def state_size(self) -> int:
        """Return the bytes of what is remembered between steps."""
        return sum(int(state.nbytes) for state in self.state)

    def _set(self, **constants: Any) -> None:
        """Set the constants of the rule; refuse those that its formula does not bear."""
        for name, value in constants.items():
            what, rates = f"{type(self).__name__}: {name}", [value]
            if name == "betas":
                rates = [*value] if hasattr(value, "__len__") else []
                check(len(rates) == 2, what, "be two numbers", value)
            for rate in rates:
                if name == "eps":
                    check_positive(what, rate)
                else:
                    check_between(what, rate, 0, 1, "[)")
            setattr(self, name, value)


class GD(Optimizer):
    r"""Gradient descent, :math:`\theta \leftarrow \theta - \eta g`.

    Equals ``torch.optim.SGD``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> p = np.array([1.0])
        >>> GD([p], lr=0.25).step([np.array([2.0])])
        >>> p.tolist()
        [0.5]
    """

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        p -= self.lr * g


class Momentum(Optimizer):
    r"""Gradient descent with momentum, the heavy ball (Polyak 1964).

    .. math::
        m &\leftarrow \beta m + g \\
        \theta &\leftarrow \theta - \eta m

    Equals ``torch.optim.SGD`` with a momentum.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        beta: :math:`\beta`, how much of :math:`m` is kept, in [0, 1).
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: Momentum(p, lr=1.0, beta=0.5)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().tolist()
        [0.0, -1.0, -2.5, -4.25]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        beta: float = 0.9,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(beta=beta)
        self.m = self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        m = self.m[i]
        m *= self.beta
        m += g
        p -= self.lr * m


class Nesterov(Optimizer):
    r"""Nesterov's accelerated gradient (1983), seen where gradients are taken.

    .. math::
        m &\leftarrow \beta_{t-1} m + g \\
        \theta &\leftarrow \theta - \eta\, (g + \beta_t m)

    The points :math:`\theta + \eta \beta_t m` are those of the form with a look ahead,
    in which :math:`g` is the gradient at :math:`\theta + \beta v`. The momentum
    ``beta`` may be a function of the number of the step, such as
    :func:`convex_momentum`.

    Equals ``torch.optim.SGD`` with ``nesterov=True``, for a number ``beta``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        beta: :math:`\beta`, how much of :math:`m` is kept, in [0, 1).
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: Nesterov(p, lr=1.0, beta=0.5)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().tolist()
        [0.0, -1.5, -3.25, -5.125]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        beta: float | Callable[[int], float] = 0.9,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(beta=beta(0) if callable(beta) else beta)
        self.beta, self.m = beta, self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        m, t, beta = self.m[i], self.t[i], self.beta
        before, now = (beta(t - 1), beta(t)) if callable(beta) else (beta, beta)
        check_between("Nesterov: beta", now, 0, 1, "[)")
        m *= before
        m += g
        step = now * m
        step += g
        step *= self.lr
        p -= step


def convex_momentum(t: int) -> float:
    r"""Return Nesterov's momentum :math:`(t-1)/(t+2)` for convex functions.

    It is :math:`\beta_t` for :math:`t \ge 1`; at the start, :math:`\beta_0 = 0`.

    Args:
        t: number of the step.

    Example:
        >>> [convex_momentum(t) for t in (0, 1, 4, 10)]
        [0.0, 0.0, 0.5, 0.75]
    """
    check(t >= 0, "convex_momentum: t", "not be negative", t)
    return max(t - 1, 0) / (t + 2)


class AdaGrad(Optimizer):
    r"""AdaGrad: a step size for each coordinate (Duchi, Hazan and Singer 2011).

    .. math::
        v &\leftarrow v + g^2 \\
        \theta &\leftarrow \theta - \eta\, g / (\sqrt{v} + \varepsilon)

    Equals ``torch.optim.Adagrad``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: AdaGrad(p, lr=1.0)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().round(3).tolist()
        [0.0, -1.0, -1.707, -2.284]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-2,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(eps=eps)
        self.v = self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        v = self.v[i]
        v += g * g
        p -= self.lr * (g / (v**0.5 + self.eps))


class RMSProp(Optimizer):
    r"""RMSProp: AdaGrad that forgets old gradients (Tieleman and Hinton 2012).

    .. math::
        v &\leftarrow \alpha v + (1 - \alpha) g^2 \\
        \theta &\leftarrow \theta - \eta\, g / (\sqrt{v} + \varepsilon)

    Equals ``torch.optim.RMSprop``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        alpha: :math:`\alpha`, how much of :math:`v` is kept, in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: RMSProp(p, lr=1.0, alpha=0.75)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().round(3).tolist()
        [0.0, -2.0, -3.512, -4.827]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(alpha=alpha, eps=eps)
        self.v = self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        v = self.v[i]
        v *= self.alpha
        v += (1 - self.alpha) * (g * g)
        p -= self.lr * (g / (v**0.5 + self.eps))


class Adadelta(Optimizer):
    r"""Adadelta: steps in the units of the parameters (Zeiler 2012).

    .. math::
        v &\leftarrow \rho v + (1 - \rho) g^2 \\
        d &= g \sqrt{u + \varepsilon} \,/ \sqrt{v + \varepsilon} \\
        u &\leftarrow \rho u + (1 - \rho) d^2 \\
        \theta &\leftarrow \theta - \eta\, d

    In the paper :math:`\eta = 1`. Without :math:`\varepsilon` the first step would be
    zero.

    Equals ``torch.optim.Adadelta``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        rho: :math:`\rho`, how much of :math:`v` and :math:`u` is kept, in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: Adadelta(p)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().round(4).tolist()
        [0.0, -0.0032, -0.0064, -0.0097]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(rho=rho, eps=eps)
        self.v, self.u = self.zeros(), self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        v, u, rho = self.v[i], self.u[i], self.rho
        v *= rho
        v += (1 - rho) * (g * g)
        d = g * ((u + self.eps) / (v + self.eps)) ** 0.5
        u *= rho
        u += (1 - rho) * (d * d)
        p -= self.lr * d


class Adam(Optimizer):
    r"""Adam: momentum, and a step size for each coordinate (Kingma and Ba 2015).

    .. math::
        m &\leftarrow \beta_1 m + g,   & \hat m &= m / \textstyle\sum_{k<t} \beta_1^k \\
        v &\leftarrow \beta_2 v + g^2, & \hat v &= v / \textstyle\sum_{k<t} \beta_2^k \\
        \theta &\leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \varepsilon)

    The paper's moments are :math:`(1 - \beta_1) m` and :math:`(1 - \beta_2) v`, and its
    corrections :math:`1 - \beta^t = (1 - \beta) \sum_{k<t} \beta^k`; its :math:`\hat m`
    and :math:`\hat v` are these.

    Equals ``torch.optim.Adam``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        betas: :math:`\beta_1` and :math:`\beta_2`, what both sums keep, in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda`; gradients become :math:`g + \lambda\theta`.

    Example:
        >>> p = np.zeros(3)
        >>> Adam([p], lr=0.1).step([np.array([0.001, 1.0, -1000.0])])
        >>> p.round(3).tolist()
        [-0.1, -0.1, 0.1]
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
        self._set(betas=betas, eps=eps)
        self.m, self.v = self.zeros(), self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:
        """One line per line of the formula."""
        m, t = self.m[i], self.t[i]
        m *= self.betas[0]
        m += g
        step = m / self.denominator(i, g)
        step *= self.lr / _geometric_sum(self.betas[0], t)
        p -= step

    def denominator(self, i: int, g: Any) -> Any:
        r"""Remember :math:`g^2`; return :math:`\sqrt{\hat v} + \varepsilon`."""
        root = self.second_moment(i, g) ** 0.5
        root /= sqrt(_geometric_sum(self.betas[1], self.t[i]))
        root += self.eps
        return root

    def second_moment(self, i: int, g: Any) -> Any:
        """Return :math:`v` with the new gradient."""
        v = self.v[i]
        v *= self.betas[1]
        v += g * g
        return v


class AdaMax(Adam):
    r"""AdaMax: Adam with the largest gradient instead of the mean square.

    From the same paper (Kingma and Ba 2015).

    .. math::
        u &\leftarrow \max(\beta_2 u, \lvert g \rvert + \varepsilon) \\
        \theta &\leftarrow \theta - \eta\, \hat m / u

    Equals ``torch.optim.Adamax``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        args: further arguments of :class:`Adam`.
        kwargs: further arguments of :class:`Adam`, by name.

    Example:
        >>> p = np.zeros(1)
        >>> optimizer = AdaMax([p], lr=1.0, betas=(0.0, 0.5))
        >>> for g in (4.0, 1.0):  # u is 4, then max(4/2, 1)
        ...     optimizer.step([np.array([g])])
        >>> p.round(3).tolist()
        [-1.5]
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float = 2e-3, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(parameters, lr, *args, **kwargs)

    def denominator(self, i: int, g: Any) -> Any:
        r"""Return :math:`u` with the new gradient; it is kept in ``v``."""
        u = self.v[i]
        u *= self.betas[1]
        u[...] = u.clip(abs(g) + self.eps)
        return u


class NAdam(Adam):
    r"""NAdam: Adam with Nesterov's momentum (Dozat 2016).

    .. math::
        \mu_t &= \beta_1 (1 - \tfrac12\, 0.96^{\psi t}), \quad
        \pi_t = \mu_1 \cdots \mu_t \\
        \hat m &= \frac{\mu_{t+1}\, (1 - \beta_1)\, m}{1 - \pi_{t+1}}
            + \frac{(1 - \mu_t)\, g}{1 - \pi_t}

    with the rest as in Adam, whose :math:`m` is a sum without the factor
    :math:`1 - \beta_1`, and :math:`\psi = 0.004`.

    Equals ``torch.optim.NAdam``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        args: further arguments of :class:`Adam`.
        kwargs: further arguments of :class:`Adam`, by name.

    Example:
        >>> from dlcore.optimization.landscapes import descend
        >>> make = lambda p: NAdam(p, lr=1.0)
        >>> path = descend(np.ones_like, np.zeros(1), make, 3)  # the gradient is 1
        >>> path.ravel().round(3).tolist()
        [0.0, -1.056, -1.84, -2.572]
    """

    psi = 4e-3

    def __init__(
        self, parameters: Iterable[Any], lr: float = 2e-3, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(parameters, lr, *args, **kwargs)
        self.pi = [1.0] * len(self.parameters)

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        m, t, beta1 = self.m[i], self.t[i], self.betas[0]
        now, then = (beta1 * (1 - 0.96 ** (self.psi * k) / 2) for k in (t, t + 1))
        self.pi[i] *= now
        m *= beta1
        m += g
        m_hat = m * (then * (1 - beta1) / (1 - self.pi[i] * then))
        m_hat += g * ((1 - now) / (1 - self.pi[i]))
        m_hat /= self.denominator(i, g)
        m_hat *= self.lr
        p -= m_hat


class AMSGrad(Adam):
    r"""AMSGrad: Adam that divides by the largest :math:`v` so far (Reddi et al. 2018).

    As in PyTorch the correction :math:`\hat v` comes after the maximum. The paper
    leaves it out, and only there can the factor of the gradient never grow.

    Equals ``torch.optim.Adam`` with ``amsgrad=True``.

    Args:
        args: those of :class:`Adam`.
        kwargs: those of :class:`Adam`, by name.

    Example:
        >>> optimizer = AMSGrad([np.zeros(1)], betas=(0.0, 0.5))
        >>> for g in (10.0, 1.0):
        ...     optimizer.step([np.array([g])])
        >>> optimizer.v[0].tolist(), optimizer.largest[0].tolist()
        ([51.0], [100.0])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.largest = self.zeros()

    def second_moment(self, i: int, g: Any) -> Any:  # noqa: D102
        largest = self.largest[i]
        largest[...] = largest.clip(super().second_moment(i, g))
        return largest


class AdamW(Adam):
    r"""AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    .. math::
        \theta \leftarrow (1 - \eta\lambda)\, \theta
            - \eta\, \hat m / (\sqrt{\hat v} + \varepsilon)

    Equals ``torch.optim.AdamW``.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        betas: :math:`\beta_1` and :math:`\beta_2`, what both sums keep, in [0, 1).
        eps: :math:`\varepsilon`, keeps the division finite.
        weight_decay: :math:`\lambda`.

    Example:
        >>> p = np.ones(1)
        >>> AdamW([p], lr=0.1, weight_decay=0.5).step([np.zeros(1)])
        >>> p.round(3).tolist()
        [0.95]
    """

    decoupled = True

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay)


class Lion(Optimizer):
    r"""Lion: steps by the sign of a momentum (Chen et al. 2023).

    The rule was found by program search.

    .. math::
        c &= \beta_1 m + (1 - \beta_1)\, g \\
        \theta &\leftarrow \theta - \eta\, (\operatorname{sgn}(c) + \lambda\theta) \\
        m &\leftarrow \beta_2 m + (1 - \beta_2)\, g

    Every coordinate with :math:`c \ne 0` moves by :math:`\eta`, and the decay is
    decoupled as in :class:`AdamW`.

    Args:
        parameters: what to train.
        lr: step size :math:`\eta`.
        betas: :math:`\beta_1` of the step, :math:`\beta_2` of the momentum, in [0, 1).
        weight_decay: :math:`\lambda`.

    Example:
        >>> p = np.zeros(3)
        >>> Lion([p], lr=0.1).step([np.array([0.001, 0.0, -1000.0])])
        >>> p.round(3).tolist()
        [-0.1, 0.0, 0.1]
    """

    decoupled = True

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, weight_decay)
        self._set(betas=betas)
        self.m = self.zeros()

    def update(self, i: int, p: Any, g: Any) -> None:  # noqa: D102
        m, (beta1, beta2) = self.m[i], self.betas
        c = beta1 * m + (1 - beta1) * g
        p -= self.lr * (c / (abs(c) + (c == 0)))
        m *= beta2
        m += (1 - beta2) * g


def clip(parameters: Iterable[Any], norm: float) -> float:
    r"""Shorten gradients that are longer than ``norm``, all by the same factor.

    .. math:: g \leftarrow g \cdot \min(1, c / \lVert g \rVert)

    where :math:`\lVert g \rVert` is the norm of all gradients together.

    Equals ``torch.nn.utils.clip_grad_norm_``.

    Args:
        parameters: what carries gradients.
        norm: the largest norm :math:`c` that is left alone.

    Returns:
        The norm before, ∞ if it is beyond all floats.

    Example:
        >>> from dlcore.optimization.modules import Parameter
        >>> p = Parameter([0.0, 0.0])
        >>> p.grad = np.array([3.0, 4.0])
        >>> clip([p], norm=1.0), p.grad.round(3).tolist()
        (5.0, [0.6, 0.8])
    """
    check_positive("clip: norm", norm)
    given = {id(p): p for p in parameters}.values()
    wanted = [getattr(p, "requires_grad", None) for p in given]
    hint = "Pass the parameters, not their gradients."
    rule, ok = "be tensors that require gradients", any(wanted) and None not in wanted
    check(ok, "clip: parameters", rule, [type(p).__name__ for p in given], hint)
    owners = [p for p in given if p.grad is not None]
    tops = [float(abs(p.grad).max()) for p in owners if 0 not in p.grad.shape]
    hint = "Look for the step at which the cost left the rails."
    finite = all(top < inf for top in tops)
    check(finite, "clip: gradients", "be finite", "NaN or ∞", hint)
    if not (largest := max(tops, default=0.0)):
        return 0.0
    length = sqrt(sum(float(((p.grad / largest) ** 2).sum()) for p in owners))
    if largest * length > norm:
        for p in owners:  # anew: two may share one array
            p.grad = p.grad / largest * (norm / length)
    return largest * length


def _value(p: Any) -> Any:
    """Return the array of a parameter."""
    return p.data if hasattr(p, "grad") else p


def _kind(array: Any) -> str:
    """Return what an array holds, or what stands there instead of one."""
    whole = hasattr(array, "dtype") and hasattr(array, "__setitem__")
    return str(array.dtype) if whole else "no array"


def _geometric_sum(beta: float, t: int) -> float:
    r"""Return :math:`\sum_{k<t} \beta^k`, the weights of a decaying sum."""
    return (1 - beta**t) / (1 - beta)
