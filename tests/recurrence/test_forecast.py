"""Tests of dlcore.recurrence.forecast."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch.distributions import NegativeBinomial, Normal

from dlcore.recurrence.forecast import (
    LOSSES,
    DeepAR,
    gaussian_loss,
    negative_binomial_loss,
    pinball,
    scale_of,
)

KINDS = ["gaussian", "negative binomial"]


def network(kind, covariates=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return DeepAR(covariates, 4, kind, generator).double()


def series(seed, B=3, T=6):
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.poisson(5, (B, T))).double()
    return z, torch.tensor(rng.normal(size=(B, T + 4, 2)))


@given(seeds)
def test_losses_agree_with_torch(rng):
    z = torch.tensor(rng.poisson(4, 8)).double()
    values = torch.tensor(rng.gamma(2, 2, (2, 8)) + 0.1)
    a = values.clone().requires_grad_()
    b = values.clone().requires_grad_()
    pairs = [
        (gaussian_loss(z, *a), Normal(*b)),
        (
            negative_binomial_loss(z, *a),
            NegativeBinomial(1 / b[1], (b[0] * b[1]) / (1 + b[0] * b[1])),
        ),
    ]
    for ours, theirs in pairs:
        other = -theirs.log_prob(z)
        assert torch.allclose(ours, other)
        one = torch.autograd.grad(ours.sum(), a)[0]
        two = torch.autograd.grad(other.sum(), b)[0]
        assert torch.allclose(one, two)


def test_negative_binomial_by_hand():
    # With alpha = 1 it is geometric: p(z) = (1 - r) r^z, r = mu / (1 + mu).
    z = torch.arange(200).double()
    p = torch.exp(-negative_binomial_loss(z, torch.full_like(z, 3), torch.ones_like(z)))
    assert torch.allclose(p, 0.25 * 0.75**z)
    mean = (p * z).sum().item()
    assert np.isclose(mean, 3)
    assert np.isclose((p * z**2).sum().item() - mean**2, 3 + 9)


@given(seeds, st.floats(0.05, 0.95))
def test_a_quantile_has_the_least_pinball_loss(rng, q):
    z = torch.tensor(rng.normal(size=31))
    costs = torch.stack([pinball(z, f.expand(31), q).mean() for f in z])
    best = torch.tensor(np.quantile(z, q, method="inverted_cdf"))
    least = pinball(z, best.expand(31), q).mean()
    assert torch.isclose(costs.min(), least)


@pytest.mark.parametrize("kind", KINDS)
def test_forecast_is_causal_and_scales(kind):
    z, x = series(1)
    net, T = network(kind), z.shape[1]
    later = z.clone()
    later[:, 3:] += 7
    nu = scale_of(z)
    for before, after in zip(
        net(z, x[:, :T], nu), net(later, x[:, :T], nu), strict=True
    ):
        assert torch.equal(before[:, :4], after[:, :4])
        assert not torch.allclose(before[:, 4:], after[:, 4:])
    mu, _ = net(z, x[:, :T], nu)
    ten, _ = net(10 * z, x[:, :T], 10 * nu)
    assert torch.allclose(10 * mu, ten, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "least", "power"),
    [("gaussian", 1e-4, 1.0), ("negative binomial", 1e-6, -0.5)],
)
def test_spread_grows_with_a_power_of_the_scale(kind, least, power):
    net = network(kind)
    h = torch.randn(5, net.W.shape[1]).to(net.W.dtype)
    nu = torch.tensor([1.0, 2, 4, 9, 100]).to(h.dtype)
    one = torch.ones_like(nu)
    spread = net.head(h, nu)[1] - least
    assert torch.allclose(spread, nu**power * (net.head(h, one)[1] - least))


@pytest.mark.parametrize("kind", KINDS)
def test_first_step_of_samples_has_the_parameters(kind):
    z, x = series(2)
    net, T = network(kind), z.shape[1]
    futures = net.sample(z, x[:, : T + 1], 20_000, np.random.default_rng(0))
    longer = torch.cat([z, torch.zeros(3, 1).double()], dim=1)
    mu, spread = (p[:, -1].detach() for p in net(longer, x[:, : T + 1], scale_of(z)))
    deviation = spread if kind == "gaussian" else (mu + spread * mu**2).sqrt()
    draws = futures[:, :, 0]
    assert ((draws.mean(1) - mu).abs() < 5 * deviation / 20_000**0.5).all()
    assert torch.allclose(draws.std(1), deviation, rtol=0.06)


def test_samples_have_all_times_and_are_counts():
    z, x = series(3)
    futures = network("negative binomial").sample(z, x, 5, np.random.default_rng(0))
    assert futures.shape == (3, 5, 4)
    assert torch.equal(futures, futures.round().abs())
    again = network("negative binomial").sample(z, x, 5, np.random.default_rng(0))
    assert torch.equal(futures, again)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_is_the_mean_of_all_values_and_reaches_all_weights(kind):
    z, x = series(4)
    net, x = network(kind), x[:, : z.shape[1]]
    loss = net.loss(z, x)
    by_hand = LOSSES[kind](z, *net(z, x))
    assert torch.isclose(loss, by_hand.sum() / z.numel())
    loss.backward()
    assert all(p.grad.abs().sum() > 0 for p in net.parameters())


def test_scale_by_hand():
    assert scale_of(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist() == [3, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda z, x: DeepAR(1, 4, "poisson"), "be one of.*'poisson'"),
        (lambda z, x: DeepAR(-1, 4), "covariates must be a whole number"),
        (
            lambda z, x: network(KINDS[1]).loss(z, x),
            r"shape \(3, 6, 2\); got shape \(3, 10, 2\)",
        ),
        (
            lambda z, x: network(KINDS[1]).loss(z + 0.5, x[:, :6]),
            "be counts 0, 1, 2.*gaussian",
        ),
        (lambda z, x: network(KINDS[0]).loss(z / 0, x[:, :6]), "be finite; got NaN"),
        (lambda z, x: network(KINDS[0]).loss(z[:, :0], x[:, :0]), "one value or more"),
        (
            lambda z, x: network(KINDS[0]).sample(
                z, x[:, :6], 2, np.random.default_rng(0)
            ),
            "more times than the past, which has 6; got 6",
        ),
        (
            lambda z, x: network(KINDS[0]).sample(z, x, 0, np.random.default_rng(0)),
            "paths must be a whole number",
        ),
        (lambda z, x: pinball(z, z, 1.0), r"q must lie in \(0, 1\); got 1.0"),
    ],
)
def test_refuses(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call(*series(0))
