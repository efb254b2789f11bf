"""Plain data: what goes in comes out, and nothing else goes in."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dlcore.assignment.plain_data import DTYPES, Tensor, call, decode, encode

ARRAYS = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=0, min_side=0))
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), ARRAYS
)
KEYS = st.one_of(st.text(), st.integers(), st.booleans())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=6,
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["tuple", "dict", "array", "tensor", "x"]), inner
        ),
    ),
    max_leaves=8,
)


def same(a, b):
    """Tell whether two values agree in types, shapes and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and np.array_equal(
            a, b, equal_nan=True
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return a == b or (a != a and b != b)


@given(VALUES)
def test_decoding_undoes_encoding_through_json(value):
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@given(
    st.one_of(
        JSON,
        st.tuples(st.sampled_from(sorted(DTYPES)), JSON, JSON).map(
            lambda body: {"array": list(body)}
        ),
    )
)
def test_any_json_is_decoded_or_refused_with_a_sentence(data):
    said = " must "
    try:
        decode(data, tensors=False)
    except ValueError as error:
        said = str(error)
    assert " must " in said


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_tensors_come_back_as_tensors(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    back = decode(json.loads(json.dumps(encode(tensor))))
    assert back.dtype == dtype
    assert torch.equal(back, tensor)
    light = decode(encode(tensor), tensors=False)
    assert isinstance(light, Tensor)
    assert np.array_equal(light.values, tensor.numpy())


def test_gradients_are_left_behind():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert encode(parameter) == encode(torch.ones(2)) == encode(2 * parameter / 2)


class Liar(np.ndarray):
    """An array that is equal to everything."""

    def __eq__(self, other):
        return np.True_

    __hash__ = None


class Number(float):
    """A number that is equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "type object"),
        (np.zeros(3).view(Liar), "type Liar"),
        (Number(1), "type Number"),
        (np.ma.masked_array([1], [True]), "type MaskedArray"),
        (np.array([None]), "the type object"),
        (np.array(["a"]), "hold numbers"),
        ({1, 2}, "type set"),
        (torch.ones(2).to_sparse(), "dense"),
        (torch.ones(2, dtype=torch.bfloat16), "bfloat16"),
        (torch.ones(2).as_subclass(type("Sub", (torch.Tensor,), {})), "Sub"),
        (10**400, "300 digits"),
        ("x" * 20_000, "10000 characters"),
        (np.zeros(200_000), "100000 items"),
        ([[[[[[[[[[0]]]]]]]]]], "8 deep"),
    ],
)
def test_what_is_not_plain_is_refused(value, words):
    with pytest.raises(ValueError, match=words):
        encode(value)


@pytest.mark.parametrize(
    "data",
    [
        {"array": ["float64", [2], [1.0]]},
        {"array": ["float64", [10**9, 10**9], []]},
        {"array": ["float64", [-1], []]},
        {"array": ["object", [1], [1]]},
        {"array": [["float64"], [1], [1]]},
        {"array": ["uint8", [1], [300]]},
        {"array": ["int64", [1], [10**30]]},
        {"array": ["float64", [1], ["nan"]]},
        {"tuple": 3},
        {"dict": [[1]]},
        {"dict": [[[], 1]]},
        {"tuple": [], "dict": []},
        {"pickle": [1]},
        10**400,
    ],
)
def test_data_in_no_known_form_are_refused(data):
    with pytest.raises(ValueError, match="must"):
        decode(data, tensors=False)


def test_each_call_gets_fresh_arguments():
    arguments = encode((np.ones(2),))

    def spoil(x):
        x += 1
        return x

    assert call(spoil, arguments) == call(spoil, arguments)


def test_call_reports_what_was_raised():
    outcome, error = call(lambda x: 1 / x, encode((0,)))
    assert outcome.raised == "ZeroDivisionError"
    assert isinstance(error, ZeroDivisionError)


def test_call_reports_an_answer_that_is_not_plain():
    outcome, error = call(lambda: sys, encode(()))
    assert "type module" in outcome.why
    assert not outcome.raised
    assert error is None


def test_checks_do_not_load_torch():
    script = (
        "import sys, dlcore.assignment, numpy as np\n"
        "from dlcore.assignment.plain_data import decode, encode\n"
        "decode(encode((np.ones(3), [1.0])))\n"
        "decode({'tensor': ['float32', [1], [1.0]]}, tensors=False)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
