r"""Networks: layers one after another, and the gradient through them.

A layer computes ``Y, Z = layer.forward(X)``, from rows of inputs to rows of outputs, where
``Z`` holds the weighted sums of its units, and knows the way back:
``dX, gradients = layer.backward(X, Z, dY)`` turns the gradient of a cost by the outputs
into those by the inputs and by the parameters.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import (
    check,
    check_columns,
    check_finite,
    check_matrix,
    check_shape,
    check_whole,
)
from dlcore.feedforward.activations import Activation, Function, identity
from dlcore.feedforward.initialization import Shape, he, normal
from dlcore.feedforward.losses import Loss

__all__ = [
    "ROWS",
    "Concat",
    "Dense",
    "Gradients",
    "Inputs",
    "Network",
    "Outputs",
    "Residual",
    "Sums",
    "initialize",
    "layered",
    "mlp",
]

#: Inputs of a layer, a row per sample.
Inputs: TypeAlias = Float[ndarray, "s n"]
#: Weighted sums of a layer's units, a row per sample.
Sums: TypeAlias = Float[ndarray, "s m"]
#: Outputs of a layer, a row per sample.
Outputs: TypeAlias = Float[ndarray, "s k"]
#: What a layer's backward pass returns, the gradients by its inputs and by each of its
#: parameters.
Gradients: TypeAlias = tuple[Inputs, list[ndarray]]

#: The hint given where inputs have a wrong shape.
ROWS = "Rows are samples; on the line, pass x[:, None]."


@dataclass(eq=False)
class Dense:
    r"""The fully connected layer :math:`y = \varphi(Wx + b)`.

    Equals ``torch.nn.functional.linear`` followed by the activation.

    Attributes:
        W: weights, a row per unit; whole numbers become floats.
        b: biases, one per unit; whole numbers become floats.
        phi: activation; a function without a derivative will do if nothing is trained.

    Example:
        >>> layer = Dense(np.array([[1.0, 2.0]]), np.array([-1.0]))
        >>> layer(np.array([[3.0, 4.0]])).tolist()
        [[10.0]]
    """

    W: Float[ndarray, "m n"]
    b: Float[ndarray, "m"]
    phi: Function = identity

    def __post_init__(self) -> None:
        name = type(self).__name__
        self.W, self.b = _floats(self.W), _floats(self.b)
        check_matrix(f"{name}: W", self.W, "be a matrix, a row per unit")
        ok, got = self.b.shape == self.W.shape[:1], f"shape {self.b.shape}"
        must = f"have one bias for each of the {len(self.W)} rows of W"
        check(ok, f"{name}: b", must, got)
        check_finite(f"{name}: W and b", self.W, self.b)

    def parameters(self) -> list[ndarray]:
        """Return the arrays that training changes."""
        return [self.W, self.b]

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.W.shape[1])

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.W.shape[0])

    def forward(self, X: Inputs) -> tuple[Outputs, Sums]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        check_columns(f"{type(self).__name__}: X", X, self.inputs, hint=ROWS)
        Z = X @ self.W.T + self.b
        return self.phi(Z), Z

    def backward(self, X: Inputs, Z: Sums, dY: Outputs) -> Gradients:
        """Return the gradients by ``X`` and by each of the parameters."""
        what = f"{type(self).__name__}: phi"
        check(isinstance(self.phi, Activation), what, "know its derivative", self.phi)
        dZ = dY * cast("Activation", self.phi).derivative(Z)
        return dZ @ self.W, [dZ.T @ X, dZ.sum(axis=0)]

    def __call__(self, X: Inputs) -> Outputs:
        """Return the outputs for the rows of ``X``."""
        return self.forward(X)[0]


@dataclass(eq=False)
class Residual(Dense):
    r"""The layer with a shortcut, :math:`y = Vx + \varphi(Wx + b) - \varphi(0)`.

    With zero weights and biases it is the shortcut :math:`Vx` alone.

    Equals ``torch.nn.functional.linear`` with the activation, plus the shortcut and
    minus :math:`\varphi(0)`.

    Attributes:
        W: weights, a row per unit.
        b: biases, one per unit.
        phi: activation.
        V: the shortcut; without one it is the identity, and is not trained.

    Example:
        >>> Residual(np.zeros((2, 2)), np.zeros(2))(np.array([[3.0, 4.0]])).tolist()
        [[3.0, 4.0]]
    """

    V: Float[ndarray, "m n"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.V is None:
            check_shape("Residual: W", self.W, *[self.inputs] * 2, hint="Or pass V.")
            return
        self.V = _floats(self.V)
        check_shape("Residual: V", self.V, *self.W.shape, hint="As W.")
        check_finite("Residual: V", self.V)

    def parameters(self) -> list[ndarray]:
        """Return the arrays that training changes."""
        return super().parameters() + ([] if self.V is None else [self.V])

    def forward(self, X: Inputs) -> tuple[Outputs, Sums]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        Y, Z = super().forward(X)
        shortcut = X if self.V is None else X @ self.V.T
        return shortcut + (Y - self.phi(np.zeros(1))), Z

    def backward(self, X: Inputs, Z: Sums, dY: Outputs) -> Gradients:
        """Return the gradients by ``X`` and by each of the parameters."""
        dX, gradients = super().backward(X, Z, dY)
        if self.V is None:
            return dX + dY, gradients
        return dX + dY @ self.V, [*gradients, dY.T @ X]


class Concat(Dense):
    r"""The layer :math:`y = (x, \varphi(Wx + b))`: outputs appended to inputs.

    A chain of them is a block of a DenseNet: each unit sees all earlier ones.

    Equals ``torch.cat`` of the inputs and the outputs of a dense layer.

    Example:
        >>> Concat(np.ones((1, 2)), np.zeros(1))(np.array([[3.0, 4.0]])).tolist()
        [[3.0, 4.0, 7.0]]
    """

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.inputs + super().outputs

    def forward(self, X: Inputs) -> tuple[Outputs, Sums]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        Y, Z = super().forward(X)
        return np.hstack([X, Y]), Z

    def backward(self, X: Inputs, Z: Sums, dY: Outputs) -> Gradients:
        """Return the gradients by ``X`` and by each of the parameters."""
        kept, new = np.hsplit(dY, [self.inputs])
        dX, gradients = super().backward(X, Z, new)
        return kept + dX, gradients


@dataclass(eq=False)
class Network:
    """A feedforward network: layers one after another.

    Equals ``torch.nn.Sequential``, in value and gradient.

    Attributes:
        layers: from the inputs to the outputs.

    Example:
        >>> from dlcore.feedforward.losses import squared
        >>> net = Network([Dense(np.array([[2.0]]), np.array([1.0]))])
        >>> loss, (dW, db) = net.gradient(np.array([[3.0]]), np.array([[6.0]]), squared)
        >>> loss, dW.tolist(), db.tolist()  # output 7, target 6
        (0.5, [[3.0]], [1.0])
    """

    layers: Sequence[Dense]

    def __post_init__(self) -> None:
        check(len(self.layers) > 0, "Network: layers", "not be empty", "none")
        for k, (below, above) in enumerate(pairwise(self.layers)):
            m, n = below.outputs, above.inputs
            got = f"{m} outputs of layer {k + 1} for {n} inputs of layer {k + 2}"
            check(m == n, "Network: layers", "fit together", got)

    def parameters(self) -> list[ndarray]:
        """Return the arrays of all layers that training changes."""
        return [p for layer in self.layers for p in layer.parameters()]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(p.size for p in self.parameters())

    def activations(self, X: Float[ndarray, "s n"]) -> list[Float[ndarray, "s _"]]:
        """Return the inputs and the outputs of every layer."""
        steps, Y = self.forward(X)
        return [below for _, below, _ in steps] + [Y]

    def __call__(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s m"]:
        """Return the outputs for the rows of ``X``."""
        return self.forward(X)[1]

    def forward(
        self, X: Float[ndarray, "s n"]
    ) -> tuple[list[tuple[Dense, ndarray, ndarray]], Float[ndarray, "s m"]]:
        """Return what the way back needs of each layer, and the outputs.

        That is the layer, what went into it, and its weighted sums.
        """
        steps = []
        for layer in self.layers:
            Y, Z = layer.forward(X)
            steps.append((layer, X, Z))
            X = Y
        return steps, X

    def gradient(
        self, X: Float[ndarray, "s n"], y: ndarray, loss: Loss
    ) -> tuple[float, list[ndarray]]:
        """Return the mean loss, and its gradient by each parameter.

        Forward through the layers, then back through them in the opposite order.
        """
        steps, X = self.forward(X)
        dX = loss.gradient(X, y) / len(X)
        gradients: list[ndarray] = []
        for layer, below, Z in reversed(steps):
            dX, own = layer.backward(below, Z, dX)
            gradients = own + gradients
        return float(loss(X, y).mean()), gradients


def layered(
    pairs: Iterable[tuple[Float[ndarray, "_ _"], Float[ndarray, "_"]]], phi: Function
) -> Network:
    r"""Build a network of weights and biases :math:`(W, b)`, with a linear last layer.

    Args:
        pairs: one for each layer, from the inputs to the outputs.
        phi: activation of the hidden layers.

    Example:
        >>> from dlcore.feedforward.activations import relu
        >>> hidden = np.array([[1.0], [-1.0]]), np.zeros(2)
        >>> net = layered([hidden, (np.ones((1, 2)), np.zeros(1))], relu)
        >>> net(np.array([[-2.0], [3.0]])).tolist()  # |x|
        [[2.0], [3.0]]
    """
    network = Network([Dense(W, b, phi) for W, b in pairs])
    network.layers[-1].phi = identity
    return network


def initialize(
    network: Network, rule: Callable[[Shape], float], rng: Generator
) -> Network:
    """Draw the weights of all layers from normal distributions; biases become zero.

    Args:
        network: changed in place.
        rule: variance of the weights for their shape.
        rng: source of randomness.

    Returns:
        The network.

    Example:
        >>> net = Network([Dense(np.zeros((200, 50)), np.ones(200))])
        >>> W, b = initialize(net, he, np.random.default_rng(0)).parameters()
        >>> float(W.var().round(2)), float(b.max())  # 2/50
        (0.04, 0.0)
    """
    check(callable(rule), "initialize: rule", "be a function of a shape", rule)
    for layer in network.layers:
        layer.W[...] = normal(layer.W.shape, rule(layer.W.shape), rng)
        layer.b[...] = 0
    return network


def mlp(sizes: Sequence[int], phi: Activation, rng: Generator) -> Network:
    r"""Build a multilayer perceptron, whose last layer is linear.

    Weights are drawn by the rule :func:`he`, from :math:`\mathcal{N}(0, 2/n)` for
    :math:`n` inputs; biases are zero.

    Args:
        sizes: number of inputs, of units in each hidden layer, of outputs.
        phi: activation of the hidden layers.
        rng: source of randomness.

    Example:
        >>> from dlcore.feedforward.activations import relu
        >>> mlp([784, 100, 10], relu, np.random.default_rng(0)).size  # 785·100 + 101·10
        79510
    """
    check(len(sizes) >= 2, "mlp: sizes", "name inputs and outputs", sizes)
    for size in sizes:
        check_whole("mlp: each size", size, 1)
    pairs = [(np.zeros((m, n)), np.zeros(m)) for n, m in pairwise(sizes)]
    return initialize(layered(pairs, phi), he, rng)


def _floats(a: ndarray) -> ndarray:
    """Return the array itself if it holds floats, else a copy that does."""
    a = np.asarray(a)
    return a if a.dtype.kind == "f" else a.astype(float)
