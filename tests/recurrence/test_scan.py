import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from dlcore.recurrence.scan import scan, scan_doubling, scan_loop

lengths = st.integers(1, 40)


def steps(rng, T, kind):
    parts = rng.normal(size=(4, 2, T, 3))
    if kind == "complex":
        a, b = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    else:
        a, b = parts[:2]
    return [torch.tensor(x, requires_grad=True) for x in (a, b)]


kinds = pytest.mark.parametrize("kind", ["real", "complex"])


@kinds
@given(seeds, st.integers(2, 40))
def test_all_ways_give_the_same_recurrence_and_gradient(kind, rng, T):
    a, b = steps(rng, T, kind)
    weights = torch.tensor(rng.normal(size=b.shape))
    expected = scan_loop(a, b)
    slopes = torch.autograd.grad((weights * expected.abs()).sum(), [a, b])
    for way in (scan, lambda a, b: scan_doubling(a, b)[0]):
        z = way(a, b)
        torch.testing.assert_close(z, expected)
        mine = torch.autograd.grad((weights * z.abs()).sum(), [a, b])
        torch.testing.assert_close(mine, slopes)


@kinds
@given(seeds, st.integers(2, 9))
def test_second_derivatives_are_those_of_the_loop(kind, rng, T):
    a, b = steps(rng, T, kind)
    found = []
    for way in (scan, scan_loop):
        cost = way(a, b).abs().pow(3).sum()
        slopes = torch.autograd.grad(cost, [a, b], create_graph=True)
        length = sum(slope.abs().square().sum() for slope in slopes)
        found.append(torch.autograd.grad(length, [a, b]))
    torch.testing.assert_close(*found)


@given(seeds, lengths)
def test_recurrence_is_that_of_scipy(rng, T):
    from scipy.signal import lfilter

    b = rng.normal(size=(2, T, 3))
    a = torch.full((2, T, 3), 0.7, dtype=torch.float64)
    theirs = torch.tensor(lfilter([1], [1, -0.7], b, axis=1))
    torch.testing.assert_close(scan(a, torch.tensor(b)), theirs)


@given(seeds, st.integers(2, 40), st.data())
def test_nothing_depends_on_later_steps(rng, T, data):
    a, b = (x.detach() for x in steps(rng, T, "real"))
    t = data.draw(st.integers(1, T - 1))
    before = scan(a, b)[:, :t].clone()
    a[:, t:], b[:, t:] = 5.0, -3.0
    torch.testing.assert_close(scan(a, b)[:, :t], before)


def test_powers_of_two_by_hand():
    two, one = torch.full((1, 5, 1), 2.0), torch.ones(1, 5, 1)
    for z in (scan(two, one), scan_loop(two, one), scan_doubling(two, one)[0]):
        assert z.flatten().tolist() == [1, 3, 7, 15, 31]
    assert scan(two[:, :1], one[:, :1]).item() == 1


@pytest.mark.parametrize(
    ("T", "rounds"), [(1, 0), (2, 1), (5, 3), (8, 3), (9, 4), (1000, 10)]
)
def test_doubling_takes_a_round_for_each_bit(T, rounds):
    one = torch.ones(1, T, 1)
    assert scan_doubling(one, one)[1] == rounds


def test_factors_that_vanish_do_no_harm():
    a = torch.zeros(1, 2000, 1)
    b = torch.ones(1, 2000, 1)
    assert torch.equal(scan(a, b), b)
    tiny = scan(a + 1e-30, b)
    assert torch.isfinite(tiny).all()


@pytest.mark.parametrize("way", [scan, scan_loop, scan_doubling])
@pytest.mark.usefixtures("unchecked")
def test_refuses_steps_that_do_not_fit(way):
    for a, b in [
        (torch.ones(1, 3, 2), torch.ones(1, 4, 2)),
        (torch.ones(3, 2), torch.ones(3, 2)),
        (torch.ones(1, 0, 2), torch.ones(1, 0, 2)),
    ]:
        with pytest.raises(ValueError, match="a and b must have the same axes"):
            way(a, b)
