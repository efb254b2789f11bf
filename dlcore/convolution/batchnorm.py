r"""Batch normalisation of pictures: each channel is measured over batch and places.

The same idea for tables, on our own tensors, is ``BatchNorm`` in ``dlcore.optimization.normalization``.
"""

from numbers import Real
from typing import Any

from jaxtyping import Float

from dlcore._torch import Tensor, nn, torch
from dlcore.checks import check, check_whole

OTHERS = (0, 2, 3)  # the axes of a batch of pictures that are not the channel


class _Normalize(torch.autograd.Function):
    """Normalise by the batch, scale and shift; return also mean and variance."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Any:
        mu = x.mean(OTHERS)
        x_hat = x - _column(mu)
        squares = x_hat * x_hat
        v = squares.mean(OTHERS)
        root = (v + eps).sqrt()
        x_hat /= _column(root)
        y = torch.mul(x_hat, _column(gamma), out=squares)
        y += _column(beta)
        ctx.save_for_backward(x_hat, root, gamma)
        ctx.mark_non_differentiable(mu, v)
        return y, mu, v

    @staticmethod
    def backward(ctx: Any, delta: Tensor, *_: Any) -> Any:
        check(
            not torch.is_grad_enabled(),
            "BatchNorm2d: the gradient in training",
            "not be differentiated again",
            "create_graph=True",
            "Its formula forgets how x led to the normalised numbers.",
        )
        x_hat, root, gamma = ctx.saved_tensors
        products = delta * x_hat
        d_gamma, d_beta = products.sum(OTHERS), delta.sum(OTHERS)
        many = delta.numel() // len(gamma)
        dx = torch.mul(x_hat, _column(d_gamma / -many), out=products)
        dx += delta
        dx -= _column(d_beta / many)
        dx *= _column(gamma / root)
        return dx, d_gamma, d_beta, None


class BatchNorm2d(nn.Module):
    r"""Batch normalisation of pictures (Ioffe and Szegedy 2015), channel by channel.

    .. math::
        \hat x_c &= \frac{x_c - \mu_c}{\sqrt{v_c + \varepsilon}}, \\
        y_c &= \gamma_c \hat x_c + \beta_c

    In training, :math:`\mu_c` and :math:`v_c` are mean and variance of the channel over
    all pictures of the batch and all their places, and the running statistics move
    towards :math:`\mu_c` and the *unbiased* variance,
    :math:`m \leftarrow (1 - \alpha)\, m + \alpha \mu`. In use they take the place of the
    batch, and the layer is an affine map of each number.

    Args:
        channels: number of channels.
        eps: :math:`\varepsilon`, keeps the quotient finite where a channel is constant.
        momentum: :math:`\alpha`, the weight of the newest batch, in (0, 1].

    Attributes:
        gamma: scales, 1 at first.
        beta: means, 0 at first.
        running_mean: 0 at first.
        running_var: 1 at first.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        check_whole("BatchNorm2d: channels", channels, 1)
        ok = isinstance(eps, Real) and 0 <= eps < float("inf")
        check(ok, "BatchNorm2d: eps", "be finite and not negative", eps)
        ok = isinstance(momentum, Real) and 0 < momentum <= 1
        check(ok, "BatchNorm2d: momentum", "lie in (0, 1]", momentum)
        self.eps, self.momentum = eps, momentum
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C rows columns"]:
        self._check(x)
        if not self.training:
            scale = self.gamma / (self.running_var + self.eps).sqrt()
            shift = self.beta - scale * self.running_mean
            return _column(scale) * x + _column(shift)
        settings = self.gamma, self.beta, self.eps
        y, mu, v = _Normalize.apply(x, *settings)  # type: ignore[no-untyped-call]
        self._follow(mu, v, x.numel() // len(mu))
        return y

    def _follow(self, mu: Tensor, v: Tensor, many: int) -> None:
        """Move the running statistics towards those of a batch."""
        ok = bool(v.isfinite().all())
        check(ok, "BatchNorm2d: x", "have a finite variance", "NaN or ∞")
        ok = self.eps > 0 or bool((v > 0).all())
        rule = "vary in every channel where eps is 0"
        check(ok, "BatchNorm2d: x", rule, "a constant channel")
        self.running_mean.lerp_(mu, self.momentum)
        self.running_var.lerp_(v * (many / (many - 1)), self.momentum)

    def _check(self, x: Tensor) -> None:
        """Refuse what is no batch of pictures with so many channels."""
        channels, shape = len(self.gamma), tuple(x.shape)
        check(
            x.ndim == 4 and shape[1] == channels,
            "BatchNorm2d: x",
            f"have the axes (B, {channels}, rows, columns)",
            f"shape {shape}",
        )
        ok = x.dtype == self.gamma.dtype
        check(ok, "BatchNorm2d: x", f"have dtype {self.gamma.dtype}", x.dtype)
        many = x.numel() // channels
        check(
            many > 1 or not self.training,
            "BatchNorm2d: a channel in training",
            "have at least two numbers, over batch and places",
            many,
            "One number has no variance; call .eval() to use the model.",
        )

    def extra_repr(self) -> str:
        """Show the number of channels."""
        return str(len(self.gamma))


def _column(c: Float[Tensor, "C"]) -> Float[Tensor, "C 1 1"]:
    """Let a number per channel meet all its places."""
    return c[:, None, None]
