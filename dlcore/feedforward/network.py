r"""Networks: layers one after another, and the gradient through them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_whole
from dlcore.feedforward.activations import Activation, identity
from dlcore.feedforward.layers import Dense
from dlcore.feedforward.losses import Loss


@dataclass(eq=False)
class Network:
    """Layers one after another.

    Attributes:
        layers: from the inputs to the outputs.
    """

    layers: Sequence[Dense]

    def __post_init__(self) -> None:
        check(len(self.layers) > 0, "Network: layers", "not be empty", "none")
        for k, (below, above) in enumerate(pairwise(self.layers)):
            check(
                below.outputs == above.inputs,
                "Network: layers",
                "fit together",
                f"{below.outputs} outputs of layer {k + 1} "
                f"for {above.inputs} inputs of layer {k + 2}",
            )

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


def mlp(sizes: Sequence[int], phi: Activation, rng: Generator) -> Network:
    r"""Build a multilayer perceptron, whose last layer is linear.

    Weights are drawn from :math:`\mathcal{N}(0, 2/n)`, where :math:`n` is the number of
    inputs of their layer; biases are zero.

    Args:
        sizes: number of inputs, of units in each hidden layer, of outputs.
        phi: activation of the hidden layers.
        rng: source of randomness.
    """
    check(len(sizes) >= 2, "mlp: sizes", "name inputs and outputs", sizes)
    for size in sizes:
        check_whole("mlp: each size", size, 1)
    layers = [
        Dense(rng.normal(0, np.sqrt(2 / n), size=(m, n)), np.zeros(m), phi)
        for n, m in pairwise(sizes)
    ]
    layers[-1].phi = identity
    return Network(layers)
