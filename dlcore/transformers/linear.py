"""A linear map for each token, with weights from a source that the caller chooses."""

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, linear, nn, torch
from dlcore.checks import check_sizes

__all__ = ["Linear"]


class Linear(nn.Module):
    r"""A linear layer :math:`x \mapsto Wx + b`, initialised as in PyTorch.

    Equals ``torch.nn.Linear`` in its first weights, drawn from the same seed.

    Args:
        inputs: numbers :math:`x` has.
        outputs: numbers the result has.
        bias: whether there is :math:`b`.
        generator: source of the weights and biases, drawn uniformly between
            :math:`\pm 1 / \sqrt{\text{inputs}}`.

    Example:
        >>> layer = Linear(2, 1)
        >>> layer.weight.data = torch.tensor([[1.0, 2.0]])
        >>> layer.bias.data = torch.ones(1)
        >>> layer(torch.tensor([3.0, 4.0])).tolist()
        [12.0]
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_sizes("Linear", inputs=inputs, outputs=outputs)

        def uniform(*shape: int) -> nn.Parameter:
            most = inputs**-0.5
            draws = torch.empty(shape).uniform_(-most, most, generator=generator)
            return nn.Parameter(draws)

        self.weight = uniform(outputs, inputs)
        self.bias = uniform(outputs) if bias else None

    def forward(self, x: Float[Tensor, "*B n"]) -> Float[Tensor, "*B m"]:
        """Return the map of each row."""
        return linear(x, self.weight, self.bias)
