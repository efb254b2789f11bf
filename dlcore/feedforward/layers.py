r"""Layers: many units at once, from rows of inputs to rows of outputs.

A layer computes ``Y, Z = layer.forward(X)``, where ``Z`` holds the weighted sums of its
units, and knows the way back: ``dX, gradients = layer.backward(X, Z, dY)`` turns the
gradient of a cost by the outputs into those by the inputs and by the parameters.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_columns, check_finite, check_matrix
from dlcore.feedforward.activations import Activation, identity


@dataclass(eq=False)
class Dense:
    r"""The layer :math:`y = \varphi(Wx + b)`.

    Attributes:
        W: weights, a row per unit; whole numbers become floats.
        b: biases, one per unit; whole numbers become floats.
        phi: activation.
    """

    W: Float[ndarray, "m n"]
    b: Float[ndarray, "m"]
    phi: Activation = identity

    def __post_init__(self) -> None:
        name = type(self).__name__
        self.W, self.b = _floats(self.W), _floats(self.b)
        check_matrix(f"{name}: W", self.W, "be a matrix, a row per unit")
        check(
            self.b.shape == self.W.shape[:1],
            f"{name}: b",
            f"have one bias for each of the {len(self.W)} rows of W",
            f"shape {self.b.shape}",
        )
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

    def forward(
        self, X: Float[ndarray, "s n"]
    ) -> tuple[Float[ndarray, "s k"], Float[ndarray, "s m"]]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        what = f"{type(self).__name__}: X"
        check_columns(what, X, self.inputs, hint="Rows are samples.")
        Z = X @ self.W.T + self.b
        return self.phi(Z), Z

    def backward(
        self,
        X: Float[ndarray, "s n"],
        Z: Float[ndarray, "s m"],
        dY: Float[ndarray, "s k"],
    ) -> tuple[Float[ndarray, "s n"], list[ndarray]]:
        """Return the gradients by ``X`` and by each of the parameters."""
        dZ = dY * self.phi.derivative(Z)
        return dZ @ self.W, [dZ.T @ X, dZ.sum(axis=0)]

    def __call__(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s k"]:
        """Return the outputs for the rows of ``X``."""
        return self.forward(X)[0]


@dataclass(eq=False)
class Residual(Dense):
    r"""The layer :math:`y = Vx + \varphi(Wx + b) - \varphi(0)`.

    With zero weights and biases it is the shortcut :math:`Vx` alone.

    Attributes:
        V: the shortcut; without one it is the identity, and is not trained.
    """

    V: Float[ndarray, "m n"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.V is None:
            square = self.outputs == self.inputs
            what = "Residual: W"
            check(square, what, "be square without V", f"shape {self.W.shape}")
            return
        self.V = _floats(self.V)
        check(
            self.V.shape == self.W.shape,
            "Residual: V",
            f"have the shape of W, {self.W.shape}",
            f"shape {self.V.shape}",
        )
        check_finite("Residual: V", self.V)

    def parameters(self) -> list[ndarray]:
        """Return the arrays that training changes."""
        return super().parameters() + ([] if self.V is None else [self.V])

    def forward(
        self, X: Float[ndarray, "s n"]
    ) -> tuple[Float[ndarray, "s k"], Float[ndarray, "s m"]]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        Y, Z = super().forward(X)
        shortcut = X if self.V is None else X @ self.V.T
        return shortcut + (Y - self.phi(np.zeros(1))), Z

    def backward(
        self,
        X: Float[ndarray, "s n"],
        Z: Float[ndarray, "s m"],
        dY: Float[ndarray, "s k"],
    ) -> tuple[Float[ndarray, "s n"], list[ndarray]]:
        """Return the gradients by ``X`` and by each of the parameters."""
        dX, gradients = super().backward(X, Z, dY)
        if self.V is None:
            return dX + dY, gradients
        return dX + dY @ self.V, [*gradients, dY.T @ X]


class Concat(Dense):
    r"""The layer :math:`y = (x, \varphi(Wx + b))`: outputs are added to what came before.

    A chain of them is a block of a DenseNet: each unit sees all earlier ones.
    """

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.inputs + super().outputs

    def forward(
        self, X: Float[ndarray, "s n"]
    ) -> tuple[Float[ndarray, "s k"], Float[ndarray, "s m"]]:
        """Return the outputs, and the weighted sums that :meth:`backward` needs."""
        Y, Z = super().forward(X)
        return np.hstack([X, Y]), Z

    def backward(
        self,
        X: Float[ndarray, "s n"],
        Z: Float[ndarray, "s m"],
        dY: Float[ndarray, "s k"],
    ) -> tuple[Float[ndarray, "s n"], list[ndarray]]:
        """Return the gradients by ``X`` and by each of the parameters."""
        kept, new = np.hsplit(dY, [self.inputs])
        dX, gradients = super().backward(X, Z, new)
        return kept + dX, gradients


def _floats(a: ndarray) -> ndarray:
    """Return the array itself if it holds floats, else a copy that does."""
    a = np.asarray(a)
    return a if a.dtype.kind == "f" else a.astype(float)
