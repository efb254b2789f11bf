r"""Forecasts with a distribution: one recurrent network for many series of counts.

DeepAR (Salinas, Flunkert, Gasthaus, Januschowski 2020). Series :math:`z_1, \dots, z_T` are
the rows of a tensor; what is known in advance at each time, such as the day of the week,
are covariates :math:`x_t`.
"""

from typing import TypeAlias

from jaxtyping import Float
from numpy.random import Generator as Rng

from dlcore._torch import Generator, Tensor, nn, softplus, torch
from dlcore.checks import check, check_between, check_one_of, check_shape, check_whole
from dlcore.recurrence.recurrent import GRU, uniform

__all__ = [
    "LOSSES",
    "DeepAR",
    "gaussian_loss",
    "negative_binomial_loss",
    "pinball",
    "scale_of",
]

Series: TypeAlias = Float[Tensor, "B T"]


def gaussian_loss(z: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Return minus the log density of a normal distribution, entry by entry.

    .. math:: -\log \mathcal{N}(z; \mu, \sigma^2)

    Equals ``torch.distributions.Normal.log_prob`` with the sign changed.

    Args:
        z: the values.
        mu: the means :math:`\mu`.
        sigma: the standard deviations :math:`\sigma`.

    Example:
        >>> gaussian_loss(*torch.tensor([3.0, 3.0, 1.0]))  # log(2π) / 2
        tensor(0.9189)
    """
    two_pi = torch.tensor(2 * torch.pi, dtype=z.dtype)
    return ((z - mu) / sigma) ** 2 / 2 + sigma.log() + two_pi.log() / 2


def negative_binomial_loss(z: Tensor, mu: Tensor, alpha: Tensor) -> Tensor:
    r"""Return minus the log probability of a count under a negative binomial.

    With the mean :math:`\mu` and the variance :math:`\mu + \alpha \mu^2`,

    .. math::
        p(z) = \frac{\Gamma(z + 1/\alpha)}{z!\; \Gamma(1/\alpha)}
            \Bigl( \frac{1}{1 + \alpha\mu} \Bigr)^{1/\alpha}
            \Bigl( \frac{\alpha\mu}{1 + \alpha\mu} \Bigr)^z .

    Equals ``torch.distributions.NegativeBinomial.log_prob`` with the sign changed.

    Args:
        z: the counts.
        mu: the means :math:`\mu`.
        alpha: the shapes :math:`\alpha`; near 0 the counts are nearly Poisson.

    Example:
        >>> loss = negative_binomial_loss(*torch.tensor([2.0, 1.0, 1.0]))
        >>> torch.exp(-loss)  # mean 1 and alpha 1: p(z) = 1/2 · (1/2)^z
        tensor(0.1250)
    """
    r, rest = 1 / alpha, torch.log1p(alpha * mu)
    ways = torch.lgamma(z + r) - torch.lgamma(z + 1) - torch.lgamma(r)
    return -ways + r * rest - z * ((alpha * mu).log() - rest)


def pinball(
    z: Float[Tensor, "*n"], forecast: Float[Tensor, "*n"], q: float
) -> Float[Tensor, "*n"]:
    r"""Return the pinball loss of forecasts of a quantile, entry by entry.

    .. math:: \max(q\,(z - f),\ (1 - q)(f - z))

    Args:
        z: the values.
        forecast: the forecasts :math:`f` of the q-quantile.
        q: which quantile, between 0 and 1.

    Example:
        >>> z, f = torch.tensor([10.0, 10.0]), torch.tensor([8.0, 12.0])
        >>> pinball(z, f, 0.9)  # 0.9 · 2 below, 0.1 · 2 above
        tensor([1.8000, 0.2000])
    """
    check_between("pinball: q", q, 0, 1, "()")
    return torch.maximum(q * (z - forecast), (1 - q) * (forecast - z))


#: The loss of each likelihood that :class:`DeepAR` knows, by name.
LOSSES = {"gaussian": gaussian_loss, "negative binomial": negative_binomial_loss}


class DeepAR(nn.Module):
    r"""A recurrent network (GRU) that forecasts the distribution of the next value.

    It reads the last value and the covariates.

    Values are divided by the scale
    :math:`\nu = 1 + \frac1T \sum_t \lvert z_t \rvert` of their series before they
    are read; what the network says is multiplied by it. With numbers :math:`a_t, b_t`
    read from the state,

    .. math::
        \text{Gaussian:} &\quad \mu_t = \nu a_t, \quad
            \sigma_t = \nu \log(1 + e^{b_t}) \\
        \text{negative binomial:} &\quad \mu_t = \nu \log(1 + e^{a_t}), \quad
            \alpha_t = \log(1 + e^{b_t}) / \sqrt{\nu} .

    Args:
        covariates: numbers that are known at each time.
        hidden: of the state.
        likelihood: ``"gaussian"`` or ``"negative binomial"``.
        generator: source of the weights.

    Example:
        >>> net = DeepAR(0, 4)
        >>> _ = net.W.data.zero_()  # then the mean is ν log 2, with ν = 1 + 1
        >>> net(torch.ones(1, 2), torch.zeros(1, 2, 0))[0].detach()
        tensor([[1.3863, 1.3863]])
    """

    def __init__(
        self,
        covariates: int,
        hidden: int,
        likelihood: str = "negative binomial",
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_whole("DeepAR: covariates", covariates, 0)
        check_one_of("DeepAR: likelihood", likelihood, LOSSES)
        self.likelihood, self.covariates = likelihood, covariates
        self.cell = GRU(1 + covariates, hidden, generator=generator)
        self.W = uniform(hidden, (2, hidden), generator)
        self.c = nn.Parameter(torch.zeros(2))

    def head(
        self, h: Float[Tensor, "*B H"], scale: Float[Tensor, "*B"]
    ) -> tuple[Float[Tensor, "*B"], Float[Tensor, "*B"]]:
        r"""Return :math:`\mu` and :math:`\sigma`, or :math:`\mu` and :math:`\alpha`."""
        a, b = (h @ self.W.T + self.c).unbind(-1)
        if self.likelihood == "gaussian":
            return scale * a, scale * softplus(b) + 1e-4
        return scale * softplus(a) + 1e-6, softplus(b) / scale.sqrt() + 1e-6

    def forward(
        self,
        z: Series,
        x: Float[Tensor, "B T D"],
        scale: Float[Tensor, "B"] | None = None,
    ) -> tuple[Series, Series]:
        """Return the two parameters of each value, given the values before it.

        Args:
            z: the values.
            x: covariates of the same times.
            scale: of each series; without it, that of these values.
        """
        self._check(z, x)
        nu = scale_of(z) if scale is None else scale
        h, _ = self._read(z, x, nu)
        return self.head(h, nu[:, None].expand_as(z))

    def loss(
        self,
        z: Series,
        x: Float[Tensor, "B T D"],
        scale: Float[Tensor, "B"] | None = None,
    ) -> Float[Tensor, ""]:
        """Return the mean of minus the log probability of a value given those before."""
        mu, spread = self(z, x, scale)
        return LOSSES[self.likelihood](z, mu, spread).mean()

    @torch.no_grad()
    def sample(
        self, z: Series, x: Float[Tensor, "B H D"], paths: int, rng: Rng
    ) -> Float[Tensor, "B paths horizon"]:
        """Draw futures, one value after the other, each fed back.

        Args:
            z: the past.
            x: covariates of the past and of all times to come.
            paths: futures of each series.
            rng: source of the draws.
        """
        check_whole("DeepAR.sample: paths", paths, 1)
        B, T = z.shape
        self._check(z, x[:, :T])
        rule, times = f"have more times than the past, which has {T}", x.shape[1]
        check(times > T, "DeepAR.sample: x", rule, times)
        _, (h,) = self._read(z, x[:, :T], scale_of(z))
        h = h.repeat_interleave(paths, dim=0)
        nu = scale_of(z).repeat_interleave(paths)
        last, futures = z[:, -1].repeat_interleave(paths), []
        for t in range(T, x.shape[1]):
            known = x[:, t].repeat_interleave(paths, dim=0)
            now = torch.cat([(last / nu)[:, None], known], dim=1)
            _, (h,) = self.cell(now[:, None], state=(h,))
            last = self._draw(*self.head(h, nu), rng)
            futures.append(last)
        return torch.stack(futures, dim=1).reshape(B, paths, -1)

    def _read(
        self, z: Tensor, x: Tensor, nu: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the states; at each time the value before is read, at first 0."""
        before = torch.cat([torch.zeros_like(z[:, :1]), z[:, :-1]], dim=1)
        scaled = before / nu[:, None]
        return self.cell(torch.cat([scaled[:, :, None], x], dim=2))

    def _draw(self, mu: Tensor, spread: Tensor, rng: Rng) -> Tensor:
        """Draw a value for each pair of parameters."""
        m, s = mu.double().numpy(), spread.double().numpy()
        if self.likelihood == "gaussian":
            return torch.as_tensor(rng.normal(m, s)).to(mu.dtype)
        means = rng.gamma(1 / s, s * m)  # a Poisson count with a mean that is drawn
        return torch.as_tensor(rng.poisson(means)).to(mu.dtype)

    def _check(self, z: Tensor, x: Tensor) -> None:
        """Refuse series and covariates that do not fit, and values that are no counts."""
        got = f"shape {tuple(z.shape)}"
        ok = z.ndim == 2 and z.shape[1] > 0
        check(ok, "DeepAR: z", "have a series of one value or more in each row", got)
        check_shape("DeepAR: x", x, *z.shape, self.covariates)
        check(bool(z.isfinite().all()), "DeepAR: z", "be finite", "NaN or ∞")
        ok = self.likelihood == "gaussian" or bool(((z >= 0) & (z == z.round())).all())
        hint = "For other numbers take likelihood='gaussian'."
        check(ok, "DeepAR: z", "be counts 0, 1, 2, ...", "others", hint)


def scale_of(z: Series) -> Float[Tensor, "B"]:
    r"""Return the scale of each series: one plus its mean absolute value.

    .. math:: \nu = 1 + \tfrac1T \textstyle\sum_t \lvert z_t \rvert

    Example:
        >>> scale_of(torch.tensor([[0.0, 2.0, 4.0]])).tolist()
        [3.0]
    """
    return 1 + z.abs().mean(dim=1)
