from math import inf, nan

import numpy as np
import pytest
import torch

from dlcore.checks import (
    check_between,
    check_columns,
    check_data,
    check_finite,
    check_matrix,
    check_one_of,
    check_positive,
    check_shape,
    check_sizes,
)


@pytest.mark.parametrize("value", [0, -1, inf, nan, "1", None, 1j])
def test_positive_refuses(value):
    with pytest.raises(ValueError, match="f: lr must be positive and finite; got "):
        check_positive("f: lr", value)


def test_positive_takes_numbers_of_any_kind():
    for value in [1, 0.5, np.float32(2), np.int64(3)]:
        check_positive("f: lr", value)


@pytest.mark.parametrize(
    ("ends", "low", "high"),
    [
        ("[]", True, True),
        ("[)", True, False),
        ("(]", False, True),
        ("()", False, False),
    ],
)
def test_between_knows_its_ends(ends, low, high):
    for value, ok in [(0, low), (0.5, True), (1, high), (-0.1, False), (1.1, False)]:
        if ok:
            check_between("f: p", value, 0, 1, ends)
        else:
            with pytest.raises(ValueError, match=r"f: p must lie in .0, 1.; got "):
                check_between("f: p", value, 0, 1, ends)


@pytest.mark.parametrize("value", [nan, inf, "0.5", None])
def test_between_refuses_what_is_no_number(value):
    with pytest.raises(ValueError, match=r"f: p must lie in \[0, ∞\); got "):
        check_between("f: p", value, 0, inf, "[)")


def test_one_of():
    check_one_of("f: mode", "same", ("same", "full"))
    check_one_of("f: depth", 18, {18: 1, 34: 2})
    for value in ["Same", 1, None, np.ones(2), True]:
        with pytest.raises(ValueError, match=r"must be one of \['same', 1.0\]; got "):
            check_one_of("f: mode", value, ("same", 1.0))


def test_shape():
    check_shape("f: x", np.zeros((3, 2)), 3, 2)
    check_shape("f: x", np.zeros((3, 2)), None, 2)
    check_shape("f: x", np.zeros(()))
    with pytest.raises(
        ValueError, match=r"x must have the shape \(…, 4\); got shape \(3, 2\). Why."
    ):
        check_shape("f: x", np.zeros((3, 2)), None, 4, hint="Why.")
    with pytest.raises(ValueError, match=r"have the shape \(2,\); got shape \(2, 1\)"):
        check_shape("f: x", np.zeros((2, 1)), 2)


@pytest.mark.parametrize("zeros", [np.zeros, torch.zeros])
def test_matrices_are_arrays_or_tensors(zeros):
    check_matrix("f: X", zeros((3, 2)), "have points as rows")
    check_columns("f: X", zeros((3, 2)), 2)
    check_data("f", zeros((3, 2)), zeros(3))
    for shape in [(3,), (0, 2), (3, 0), (1, 1, 1)]:
        with pytest.raises(ValueError, match="f: X must have points as rows") as error:
            check_matrix("f: X", zeros(shape), "have points as rows")
        assert str(error.value).endswith(f"; got shape {shape}.")
    with pytest.raises(ValueError, match=r"have 4 columns; got shape \(3, 2\)"):
        check_columns("f: X", zeros((3, 2)), 4)
    with pytest.raises(ValueError, match=r"each of the 3 rows of X; got shape \(2,\)"):
        check_data("f", zeros((3, 2)), zeros(2))


def test_shapes_of_tensors_read_as_those_of_arrays():
    with pytest.raises(ValueError, match=r"the shape \(2,\); got shape \(2, 3\)\.$"):
        check_shape("f: x", torch.zeros(2, 3), 2)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_finite_looks_at_every_entry_of_numbers_arrays_and_tensors(bad):
    weights = torch.ones(2, requires_grad=True)
    check_finite("f: x", 1.0, 2, np.ones((2, 2)), [1, 2], weights, torch.arange(3))
    for x in [bad, np.array([1, bad]), torch.tensor([1, bad]), weights * bad, [1, bad]]:
        with pytest.raises(ValueError, match="f: x must be finite; got NaN or ∞"):
            check_finite("f: x", 1.0, x)


@pytest.mark.usefixtures("unchecked")
def test_sizes_are_whole_and_named():
    check_sizes("f", n=1, m=np.int64(2))
    for bad in [0, -1, 2.0, "2", None]:
        with pytest.raises(ValueError, match="f: m must be a whole number from 1 on"):
            check_sizes("f", n=1, m=bad)
