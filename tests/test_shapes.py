"""What the tests check at every call of dlcore: types, and shapes where they are named."""

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError

from dlcore.checks import check
from dlcore.transformers.kernel_regression import gaussian, weights


def test_types_are_checked_where_no_shape_is_named():
    with pytest.raises(BeartypeCallHintViolation, match="parameter what=1"):
        check(True, 1, "be a text", "a number")


def test_shapes_are_checked_where_they_are_named():
    with pytest.raises(TypeCheckError, match="parameters of"):
        gaussian(np.arange(3))
    with pytest.raises(TypeCheckError, match="keys"):
        weights(np.ones((2, 3)), np.ones((4, 2)), 1.0)


@pytest.mark.usefixtures("unchecked")
def test_nothing_is_checked_where_a_test_asks_for_it():
    check(True, 1, "be a text", "a number")
    assert gaussian(np.zeros(3, dtype=int)).tolist() == [1, 1, 1]
