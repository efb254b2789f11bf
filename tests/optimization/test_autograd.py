import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import seeds

from dlcore.optimization.autograd import (
    Tensor,
    concat,
    cross_entropy,
    log_softmax,
    no_grad,
    recorded,
    softmax,
    topological_order,
)

ROWS, COLUMNS = np.array([0, 2, 2]), np.array([1, 0, 0])

# Every operation on a matrix (3, 4), in our words and in those of PyTorch.
UNARY = {
    "exp": (Tensor.exp, torch.exp),
    "log": (lambda x: (x * x + 0.5).log(), lambda x: (x * x + 0.5).log()),
    "abs": (Tensor.abs, torch.abs),
    "tanh": (Tensor.tanh, torch.tanh),
    "sigmoid": (Tensor.sigmoid, torch.sigmoid),
    "relu": (Tensor.relu, torch.relu),
    "neg": (lambda x: -x, lambda x: -x),
    "square": (lambda x: x**2, lambda x: x**2),
    "root": (lambda x: (x * x + 1) ** 0.5, lambda x: (x * x + 1) ** 0.5),
    "power 0": (lambda x: x**0, lambda x: x**0),
    "inverse": (lambda x: 2.0 / (x * x + 1), lambda x: 2.0 / (x * x + 1)),
    "from": (lambda x: 2.0 - x, lambda x: 2.0 - x),
    "T": (lambda x: x.T, lambda x: x.mT),
    "reshape": (lambda x: x.reshape(2, -1), lambda x: x.reshape(2, -1)),
    "slice": (lambda x: x[1:, ::2], lambda x: x[1:, ::2]),
    "twice": (lambda x: x[ROWS, COLUMNS], lambda x: x[ROWS, COLUMNS]),
    "mask": (lambda x: x[x.data > 0], lambda x: x[x > 0]),
    "log_softmax": (log_softmax, lambda x: torch.log_softmax(x, -1)),
    "softmax": (softmax, lambda x: torch.softmax(x, -1)),
    "concat": (
        lambda x: concat([x, x[:1]], axis=0),
        lambda x: torch.cat([x, x[:1]], dim=0),
    ),
    "gram": (lambda x: x.T @ x, lambda x: x.mT @ x),
}


def pair(array):
    """The same array for both libraries."""
    return Tensor(array.copy(), requires_grad=True), torch.tensor(
        array, requires_grad=True
    )


def assert_same(mine, theirs, inputs, rng):
    """Compare a value, and the gradients of a random functional of it."""
    assert_allclose(mine.data, theirs.detach().numpy(), rtol=1e-10, atol=1e-10)
    weights = rng.normal(size=mine.shape)
    (mine * weights).sum().backward()
    (theirs * torch.tensor(weights)).sum().backward()
    for x, t in inputs:
        assert x.grad.shape == x.shape
        want = t.grad.numpy()
        scale = max(1.0, np.abs(want).max(initial=0))
        assert_allclose(x.grad, want, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("name", UNARY)
def test_every_operation_equals_torch(name):
    rng = np.random.default_rng(0)
    x, t = pair(rng.normal(size=(3, 4)))
    ours, theirs = UNARY[name]
    assert_same(ours(x), theirs(t), [(x, t)], rng)


@pytest.mark.parametrize("op", ["sum", "mean", "max"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_equal_torch(op, axis, keepdims):
    rng = np.random.default_rng(0)
    x, t = pair(rng.integers(0, 3, size=(2, 3, 4)).astype(float))  # with ties
    axes = (0, 1, 2) if axis is None else axis
    theirs = getattr(torch, {"max": "amax"}.get(op, op))
    mine = getattr(x, op)(axis, keepdims)
    assert_same(mine, theirs(t, axes, keepdim=keepdims), [(x, t)], rng)


def test_scalars_equal_torch():
    rng = np.random.default_rng(0)
    x, t = pair(rng.normal(size=()))
    mine, theirs = [
        (v.sigmoid() * v.tanh() + v.exp() / (v.abs() + 1.0)) ** 2 for v in (x, t)
    ]
    assert_same(mine, theirs, [(x, t)], rng)


@given(rng=seeds, data=st.data())
def test_broadcasting_equals_torch(rng, data):
    full = data.draw(st.lists(st.integers(1, 3), max_size=3))
    arrays = []
    for _ in range(2):
        keep = data.draw(st.integers(0, len(full)))
        ones = data.draw(st.lists(st.booleans(), min_size=keep, max_size=keep))
        tail = full[len(full) - keep :]
        shape = [1 if one else n for one, n in zip(ones, tail, strict=True)]
        arrays.append(rng.uniform(0.5, 2.0, size=shape))
    op = data.draw(st.sampled_from(["add", "sub", "mul", "truediv"]))
    (a, s), (b, t) = map(pair, arrays)
    mine, theirs = getattr(a, f"__{op}__")(b), getattr(s, f"__{op}__")(t)
    assert_same(mine, theirs, [(a, s), (b, t)], rng)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (1, 6, 3, 4)),
        ((0, 3), (3, 2)),
    ],
)
def test_matmul_equals_torch(shapes):
    rng = np.random.default_rng(0)
    (a, s), (b, t) = (pair(rng.normal(size=shape)) for shape in shapes)
    assert_same(a @ b, s @ t, [(a, s), (b, t)], rng)


@given(rng=seeds, data=st.data())
def test_random_programs_equal_torch(rng, data):
    """Each step takes earlier results, some of them again and again."""
    leaves = [pair(rng.normal(size=s)) for s in ((3, 4), (4,), (3, 1), ())]
    pool = list(leaves)
    steps = st.sampled_from(["+", "-", "*", "/", "@", "tanh", "relu", "max", "T"])
    for step in data.draw(st.lists(steps, min_size=1, max_size=12)):
        (a, s), (b, t) = (data.draw(st.sampled_from(pool)) for _ in range(2))
        if step in "+-*/":
            try:
                np.broadcast_shapes(a.shape, b.shape)
            except ValueError:
                continue
            if step == "/":
                new = (a / (b * b + 1.0), s / (t * t + 1.0))
            else:
                name = {"+": "__add__", "-": "__sub__", "*": "__mul__"}[step]
                new = (getattr(a, name)(b), getattr(s, name)(t))
        elif step == "@":
            if a.ndim != 2:
                continue
            new = ((a @ a.T).tanh(), (s @ s.mT).tanh())
        elif step == "T":
            if a.ndim != 2:
                continue
            new = (a.T, s.mT)
        elif step == "max":
            new = (a.max(keepdims=True), s.amax(keepdim=True) if a.ndim else s)
        else:
            new = (getattr(a, step)(), getattr(s, step)())
        pool.append(new)
    mine = sum(((v * v).mean() for v, _ in pool), Tensor(0.0))
    theirs = sum((v * v).mean() for _, v in pool)
    assert_same(mine, theirs, leaves, rng)


@given(rng=seeds, scale=st.sampled_from([1.0, 1000.0]))
def test_cross_entropy_equals_torch_also_for_huge_scores(rng, scale):
    z, t = pair(scale * rng.choice([-1.0, 1.0], size=(5, 3)))
    y = rng.integers(0, 3, size=5)
    mine = cross_entropy(z, y)
    theirs = torch.nn.functional.cross_entropy(t, torch.tensor(y))
    assert_same(mine, theirs, [(z, t)], rng)


def test_saturated_sigmoid_keeps_its_digits():
    assert_allclose(Tensor(-40.0).sigmoid().data, np.exp(-40.0), rtol=1e-12)


def test_no_slope_is_zero_also_for_an_infinite_gradient():
    x, t = pair(np.array([-1.0, 0.0, 4.0]))
    for v in (x, t):
        with np.errstate(divide="ignore"):
            (v.relu() ** 0.5).sum().backward()
    assert_array_equal(x.grad, [0, 0, 0.25])
    assert_array_equal(x.grad, t.grad)


@pytest.mark.parametrize(
    "f",
    [
        *(ours for ours, _ in UNARY.values()),
        lambda x: x + x,
        lambda x: x * x,
        lambda x: x / (x * x + 1),
        lambda x: x.sum(0),
        lambda x: x.max(1),
    ],
)
def test_gradients_belong_to_the_point_where_the_value_was_computed(f):
    array = np.random.default_rng(0).normal(size=(3, 4))
    kept, moved = (Tensor(array, requires_grad=True) for _ in range(2))
    (f(kept) ** 2).sum().backward()
    J = (f(moved) ** 2).sum()
    moved.data = array + 1.0  # another array, not another content
    J.backward()
    assert_array_equal(moved.grad, kept.grad)


@given(rng=seeds)
def test_a_sum_of_costs_has_the_sum_of_gradients(rng):
    x = Tensor(rng.normal(size=(2, 3)), requires_grad=True)
    (x * x).sum().backward()
    x.exp().sum().backward()  # adds to what is there
    assert_allclose(x.grad, 2 * x.data + np.exp(x.data))


def test_by_hand():
    x, w = Tensor(3.0, requires_grad=True), Tensor(5.0, requires_grad=True)
    z = w * x
    J = z * z + z  # z is used three times
    J.backward()
    assert (J.item(), z.grad, x.grad, w.grad) == (240, 31, 155, 93)
    J.backward()  # the same graph again: leaves add, results do not
    assert (z.grad, x.grad, w.grad) == (31, 310, 186)


def test_ties_share_and_entries_taken_twice_add():
    x = Tensor([1.0, 4.0, 4.0], requires_grad=True)
    x.max().backward()
    assert_array_equal(x.grad, [0, 0.5, 0.5])
    x.grad = None
    x[np.array([0, 1, 1])].sum().backward()
    assert_array_equal(x.grad, [1, 2, 0])


def test_each_leaf_owns_its_gradient():
    a, b = (Tensor(np.zeros(3), requires_grad=True) for _ in range(2))
    (a + b).sum().backward()
    a.grad *= 7.0
    assert_array_equal(b.grad, np.ones(3))


@pytest.mark.parametrize("name", UNARY)
def test_float32_stays_float32(name):
    x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    x = Tensor(x, requires_grad=True)
    weak = [2, 2.0, np.float64(2), np.array(2.0), np.arange(4), x.data > 0]
    for y in (UNARY[name][0](x), x.max(0), x.mean(1), *(x * w for w in weak)):
        assert y.data.dtype == np.float32
        y.sum().backward()
        assert x.grad.dtype == np.float32


def test_a_gradient_has_the_precision_of_its_tensor():
    x = Tensor(np.ones(3, np.float32), requires_grad=True)
    (x * np.ones(3)).sum().backward()
    assert x.grad.dtype == np.float32


def test_arrays_on_either_side_make_tensors():
    A, x = np.ones((2, 2)), Tensor(np.ones((2, 2)))
    for y in (A + x, A - x, A * x, A / x, A @ x, 1 + x, 2 - x, 3 * x, 4 / x):
        assert isinstance(y, Tensor)
        assert y.shape == (2, 2)


def test_arrays_of_floats_keep_their_precision():
    x = Tensor(np.ones(2, np.float32))
    assert (x * np.ones(2)).data.dtype == np.float64
    assert (np.ones(2, np.float32) * Tensor(np.ones(2))).data.dtype == float


def test_a_shape_may_be_a_tuple_and_parts_to_join_may_be_arrays():
    x = Tensor(np.arange(6.0), requires_grad=True)
    assert x.reshape((2, 3)).shape == x.reshape(2, -1).shape == (2, 3)
    y = concat(part for part in (np.ones(2), x))
    (y * y).sum().backward()
    assert_array_equal(x.grad, 2 * x.data)
    assert_allclose(softmax(np.zeros((1, 2))).data, 0.5)


def test_truth_is_that_of_the_number():
    assert Tensor([1.0])
    assert not Tensor([0.0])
    assert len({Tensor(1.0), Tensor(1.0)}) == 2


def test_nothing_is_remembered_without_need():
    x = Tensor(np.ones(3), requires_grad=True)
    with no_grad():
        y = x * x
    assert not y.edges
    assert not y.requires_grad
    with pytest.raises(ValueError, match="shapes"), no_grad():
        x + np.ones(2)
    assert (x * x).requires_grad  # also after an error inside
    assert not (Tensor(1.0) * Tensor(2.0)).edges


def test_history_is_in_order_and_holds_each_tensor_once():
    x = Tensor(2.0, requires_grad=True)
    y = x * x
    z = y + y * x
    order = topological_order(z)
    place = {id(t): i for i, t in enumerate(order)}
    assert len(place) == len(order) == 4
    for t in order:
        assert all(place[id(source)] < place[id(t)] for source, _ in t.edges)
    assert [t.op for t in order] == ["", "mul", "mul", "add"]


def test_a_long_chain_needs_no_recursion_and_leaves_no_rubbish():
    x = Tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y * 1.0
    y.backward()
    assert x.grad == 1
    last = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert last() is None  # freed by counting alone: there is no cycle
    finally:
        gc.enable()


ones = Tensor(np.ones((2, 3)), requires_grad=True)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tensor(ones), "Tensor: data must be numbers or an array"),
        (lambda: Tensor(None), "Tensor: data must be real numbers; got object"),
        (lambda: Tensor(1j), "Tensor: data must be real numbers; got complex"),
        (
            (ones * 2).backward,
            r"be a scalar; got shape \(2, 3\) from mul. Take its .sum",
        ),
        (Tensor(1.0).backward, "must come from one that needs a gradient"),
        (
            lambda: ones + np.ones((2, 4)),
            r"add: the shapes must be equal, or 1, .* got \(2, 3\) and \(2, 4\)",
        ),
        (lambda: ones @ ones, r"matmul: the operands .* got \(2, 3\) and \(2, 3\)"),
        (lambda: ones @ np.ones(3), "A vector is a matrix with one row"),
        (lambda: Tensor(np.ones(3)).T, r"T: the tensor must have two axes"),
        (lambda: ones**ones, "pow: the exponent must be a number; got Tensor"),
        (lambda: (ones - 1).log(), "log: the numbers must be positive; got 0.0"),
        (lambda: Tensor(np.nan).log(), "be positive; got nan"),
        (lambda: ones[:0].mean(), r"mean: the tensor must not be empty"),
        (lambda: ones[:0].max(), r"max: the tensor must not be empty"),
        (
            lambda: concat([ones, Tensor(np.ones((3, 2)))]),
            r"concat: the shapes must have an axis -1 and agree in all others",
        ),
        (
            lambda: concat([ones, ones], axis=3),
            r"have an axis 3 .* got \[\(2, 3\), \(2, 3\)\]",
        ),
        (lambda: concat([ones, ones], axis=None), "must have an axis None"),
        (lambda: concat([]), r"concat: the shapes .* got \[\]"),
        (
            lambda: Tensor(np.ones((5, 2, 3))) @ np.ones((4, 3, 2)),
            r"matmul: the shapes must be equal, .* got \(5, 2, 3\) and \(4, 3, 2\)",
        ),
        (lambda: ones.reshape(4), r"reshape: the shape must fit 6 .* got \(4,\)"),
        (lambda: ones.sum(5), "sum: axis must be among 2 axes; got 5"),
        (lambda: ones.max((0, 0)), r"max: axis must be among 2 axes; got \(0, 0"),
        (lambda: ones[2], r"getitem: the index must fit shape \(2, 3\); got 2"),
        (lambda: ones[Tensor(0)], "getitem: the index .* got Tensor"),
        (ones.item, r"item: the tensor must hold one number; got shape \(2, 3\)"),
        *(
            (call, "a comparison must be between arrays; got a Tensor")
            for call in (
                lambda: ones == ones,
                lambda: ones != 0,
                lambda: ones < 0,
                lambda: ones >= np.ones(3),
            )
        ),
        (
            lambda: cross_entropy(ones, np.array([0, 3])),
            r"cross_entropy: y must lie in 0 … 2; got \[0 3\]",
        ),
        (
            lambda: cross_entropy(ones, np.array([0.0, 1.0])),
            r"cross_entropy: z and y must be scores .* \(float64\)",
        ),
        *(
            (cost.backward, f"got {got}. Look at the {place}, and at its data")
            for cost, got, place in [
                (
                    (np.array([[1.0], [np.nan]]) @ ones[:1]).sum(),
                    "nan",
                    r"matmul of shape \(2, 3\)",
                ),
                (
                    Tensor(np.nan, requires_grad=True) * 2.0,
                    "nan",
                    r"leaf of shape \(\)",
                ),
            ]
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
def test_refuses_an_infinite_cost_and_names_where_it_began():
    with np.errstate(divide="ignore"):
        bad = 1 / (ones - 1)
    message = r"got inf. Look at the div of shape \(2, 3\), and at its data"
    with pytest.raises(ValueError, match=message):
        bad.sum().backward()


def test_a_recorded_graph_has_each_tensor_once_and_an_edge_per_use():
    x = Tensor(2.0, requires_grad=True)
    y = x * x
    z = y + y * x
    tensors, edges = recorded(z)
    assert [t.op for t in tensors.values()] == ["", "mul", "mul", "add"]
    assert edges.count(("0", "1")) == 2  # x * x
    assert len(edges) == 6
    for source, target in edges:
        assert any(t is tensors[source] for t, _ in tensors[target].edges)
