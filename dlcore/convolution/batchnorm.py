r"""Batch normalisation of pictures: each channel is measured over batch and places.

The same idea for tables, on our own tensors, is ``BatchNorm`` in
``dlcore.optimization.normalization``.
"""

from math import inf

from jaxtyping import Float

from dlcore._torch import Tensor, nn, torch
from dlcore.checks import check, check_between, check_shape, check_whole

__all__ = ["BatchNorm2d"]

_OTHERS = (0, 2, 3)  # the axes of a batch of pictures that are not the channel


class BatchNorm2d(nn.Module):
    r"""Batch normalisation of pictures (Ioffe and Szegedy 2015), channel by channel.

    .. math::
        \hat x_c &= \frac{x_c - \mu_c}{\sqrt{v_c + \varepsilon}}, \\
        y_c &= \gamma_c \hat x_c + \beta_c

    In training, :math:`\mu_c` and :math:`v_c` are mean and variance of the channel over
    all pictures of the batch and all their places, and the running statistics move
    towards :math:`\mu_c` and the *unbiased* variance, :math:`m \leftarrow (1 -
    \alpha)\, m + \alpha \mu`. In use they take the place of the batch, and the layer is
    an affine map of each number.

    Equals ``torch.nn.BatchNorm2d``.

    Args:
        channels: number of channels.
        eps: :math:`\varepsilon`, keeps the quotient finite where a channel is constant.
        momentum: :math:`\alpha`, the weight of the newest batch, in (0, 1].

    Attributes:
        gamma: scales, 1 at first.
        beta: means, 0 at first.
        running_mean: 0 at first.
        running_var: 1 at first.

    Example:
        >>> norm = BatchNorm2d(1, eps=0)
        >>> norm(torch.tensor([1.0, 3.0]).reshape(2, 1, 1, 1)).flatten().tolist()
        [-1.0, 1.0]
        >>> round(norm.running_mean.item(), 3)  # 0.9 · 0 + 0.1 · 2
        0.2
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        check_whole("BatchNorm2d: channels", channels, 1)
        check_between("BatchNorm2d: eps", eps, 0, inf, "[)")
        check_between("BatchNorm2d: momentum", momentum, 0, 1, "(]")
        self.eps, self.momentum = eps, momentum
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C rows columns"]:
        channels = len(self.gamma)
        check_shape("BatchNorm2d: x", x, None, channels, None, None)
        ok = x.dtype == self.gamma.dtype
        check(ok, "BatchNorm2d: x", f"have dtype {self.gamma.dtype}", x.dtype)
        mu, v = self.running_mean, self.running_var
        if self.training:
            what, many = "BatchNorm2d: a channel in training", x.numel() // channels
            hint = "One number has no variance; call .eval() to use the model."
            check(many > 1, what, "have at least two numbers", many, hint)
            v, mu = torch.var_mean(x, _OTHERS, correction=0)
            self._follow(mu.detach(), v.detach(), many)
        scale = self.gamma / (v + self.eps).sqrt()
        return _column(scale) * (x - _column(mu)) + _column(self.beta)

    def _follow(self, mu: Tensor, v: Tensor, many: int) -> None:
        """Move the running statistics towards those of a batch."""
        ok = bool(v.isfinite().all())
        check(ok, "BatchNorm2d: x", "have a finite variance", "NaN or ∞")
        ok = self.eps > 0 or bool((v > 0).all())
        rule = "vary in every channel where eps is 0"
        check(ok, "BatchNorm2d: x", rule, "a constant channel")
        self.running_mean.lerp_(mu, self.momentum)
        self.running_var.lerp_(v * (many / (many - 1)), self.momentum)

    def extra_repr(self) -> str:
        """Show the number of channels."""
        return str(len(self.gamma))


def _column(c: Float[Tensor, "C"]) -> Float[Tensor, "C 1 1"]:
    """Let a number per channel meet all its places."""
    return c[:, None, None]
