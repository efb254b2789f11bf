import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import seeds

from dlcore.optimization.autograd import Tensor
from dlcore.optimization.modules import Parameter
from dlcore.optimization.optimizers import (
    GD,
    Adadelta,
    AdaGrad,
    Adam,
    AdaMax,
    AdamW,
    AMSGrad,
    Lion,
    Momentum,
    NAdam,
    Nesterov,
    Optimizer,
    RMSProp,
    clip,
    convex_momentum,
)

LR = {"lr": 0.03}
PAIRS = {
    "GD": (GD, LR, torch.optim.SGD, {}),
    "Momentum": (Momentum, LR, torch.optim.SGD, {"momentum": 0.9}),
    "Nesterov": (Nesterov, LR, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "AdaGrad": (AdaGrad, LR, torch.optim.Adagrad, {}),
    "RMSProp": (RMSProp, LR, torch.optim.RMSprop, {}),
    "Adadelta": (Adadelta, {"lr": 1.0}, torch.optim.Adadelta, {}),
    "Adam": (Adam, LR, torch.optim.Adam, {}),
    "AdaMax": (AdaMax, LR, torch.optim.Adamax, {}),
    "NAdam": (NAdam, LR, torch.optim.NAdam, {}),
    "AMSGrad": (AMSGrad, LR, torch.optim.Adam, {"amsgrad": True}),
    "AdamW": (AdamW, LR, torch.optim.AdamW, {}),
}
RULES = [pair[0] for pair in PAIRS.values()] + [Lion]
ADAPTIVE = [AdaGrad, RMSProp, Adam, AdaMax, NAdam, AMSGrad, AdamW]
SHAPES = [(3, 2), (3,), ()]


@pytest.fixture(autouse=True, scope="module")
def _double():
    """Let PyTorch keep NAdam's product in double precision, as we do."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def both(name, rng, **options):
    """Return start, our rule and theirs, on equal parameters; theirs is PyTorch's."""
    ours, mine, theirs, extra = PAIRS[name]
    start = [np.array(rng.normal(size=shape)) for shape in SHAPES]
    want = [torch.nn.Parameter(torch.tensor(p)) for p in start]
    defaults = {"weight_decay": 0.0, **options}
    return (
        start,
        lambda parameters: ours(parameters, **mine, **defaults),
        want,
        theirs(want, **mine, **extra, **defaults),
    )


@pytest.mark.parametrize("kind", ["arrays", "tensors", "torch"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", PAIRS)
def test_equals_torch_after_200_steps(name, decay, kind):
    rng = np.random.default_rng(0)
    mine, make, want, theirs = both(name, rng, weight_decay=decay)
    if kind == "tensors":
        mine = [Parameter(p) for p in mine]
    if kind == "torch":
        mine = [torch.nn.Parameter(torch.tensor(p)) for p in mine]
    ours = make(mine)
    for t in range(200):
        gradients = [
            np.array(rng.normal(size=shape) * (1 + t % 7) ** 2) for shape in SHAPES
        ]
        for p, g in zip(want, gradients, strict=True):
            p.grad = torch.tensor(g)
        if kind == "arrays":
            ours.step(gradients)
        else:
            for p, g in zip(mine, gradients, strict=True):
                p.grad = torch.tensor(g) if kind == "torch" else g
            ours.step()
        theirs.step()
    for p, q in zip(mine, want, strict=True):
        value = p if kind == "arrays" else p.data
        assert_allclose(value, q.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
@given(rng=seeds, lr=st.floats(1e-5, 1.0), steps=st.integers(1, 9))
def test_equals_torch_for_all_step_sizes_and_missing_gradients(name, rng, lr, steps):
    mine, make, want, theirs = both(name, rng)
    ours = make(mine)
    ours.lr = theirs.param_groups[0]["lr"] = lr
    for _ in range(steps):
        gradients = [np.array(rng.normal(size=shape)) for shape in SHAPES]
        gradients[rng.integers(3)] = None
        for p, g in zip(want, gradients, strict=True):
            p.grad = None if g is None else torch.tensor(g)
        ours.step(gradients)
        theirs.step()
    for p, q in zip(mine, want, strict=True):
        assert_allclose(p, q.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*PAIRS])
def test_assumes_the_constants_of_torch(name):
    ours, _, theirs, extra = PAIRS[name]
    needed = {"lr": 1e-3} if theirs is torch.optim.SGD else {}
    p, q = np.ones(1), torch.nn.Parameter(torch.ones(1))
    mine, other = ours([p], **needed), theirs([q], **needed, **extra)
    for g in (1e-6, -3.0, 0.5):
        mine.step([np.array([g])])
        q.grad = torch.tensor([g])
        other.step()
    assert_allclose(p, q.detach(), rtol=1e-9)


def test_lion_by_hand():
    p = np.array([1.0, -2.0, 0.0])
    lion = Lion([p], lr=0.5, betas=(0.5, 0.75), weight_decay=0.2)
    lion.step([np.array([4.0, -4.0, 0.0])])  # c = 2, -2, 0; m = 1, -1, 0
    assert_allclose(p, [0.9 - 0.5, -1.8 + 0.5, 0])
    lion.step([np.array([-2.0, 1.0, 1.0])])  # c = -0.5, 0, 0.5
    assert_allclose(p, [0.36 + 0.5, -1.17, -0.5])
    assert_allclose(lion.m[0], [0.25, -0.5, 0.25])


def test_momentum_adds_up_by_hand():
    p = np.zeros(1)
    ball, path = Momentum([p], lr=1), []
    for _ in range(3):
        ball.step([-np.ones(1)])
        path.append(p[0])
    assert_allclose(np.diff([0.0, *path]), [1, 1.9, 2.71])


@given(rng=seeds, steps=st.integers(1, 30))
def test_nesterov_is_the_look_ahead_seen_from_the_look_ahead(rng, steps):
    A = rng.normal(size=(3, 3))
    A, lr = A @ A.T, 0.05
    x = y = rng.normal(size=3)
    p = x.copy()
    rule = Nesterov([p], lr, beta=convex_momentum)
    for t in range(1, steps + 1):
        x, before = y - lr * A @ y, x
        y = x + (t - 1) / (t + 2) * (x - before)
        rule.step([A @ p])
        assert_allclose(p, y, rtol=1e-9, atol=1e-9)
        ahead = convex_momentum(t) * lr * rule.m[0]
        assert_allclose(p + ahead, x, rtol=1e-9, atol=1e-9)


@given(scale=st.floats(1e-3, 1e3), sign=st.sampled_from([-1, 1]))
def test_first_step_of_adam_has_length_lr_whatever_the_gradient(scale, sign):
    for rule in (Adam, AMSGrad, AdamW, AdaMax, AdaGrad):
        p = np.zeros(1)
        rule([p], lr=0.1).step([np.array([sign * scale])])
        assert_allclose(p, [-0.1 * sign], rtol=1e-4)


@pytest.mark.parametrize("rule", [*ADAPTIVE, Lion])
@given(rng=seeds, scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_units_of_the_cost_do_not_matter(rule, rng, scale):
    a, b = np.zeros(4), np.zeros(4)
    rules = [
        rule([p], lr=0.1, **({} if rule is Lion else {"eps": 1e-14})) for p in (a, b)
    ]
    for _ in range(10):
        g = rng.normal(size=4)
        rules[0].step([g])
        rules[1].step([scale * g])
    assert_allclose(a, b, rtol=1e-6)


@given(rng=seeds)
def test_adadelta_is_free_of_units(rng):
    factors = np.array([1e-2, 1.0, 1e2])  # the same point in other units
    for step in range(3):
        a, b = np.zeros(3), np.zeros(3)
        ours = Adadelta([a], eps=1e-12), Adadelta([b], eps=1e-12)
        for rule, unit in zip(ours, (1.0, factors), strict=True):
            rule.u[0][...] = unit**2  # as if it had moved so far before
        for _ in range(step + 1):
            g = rng.normal(size=3) + 3
            ours[0].step([g])
            ours[1].step([g / factors])
        assert_allclose(b, factors * a, rtol=1e-6)


@given(rng=seeds)
def test_every_coordinate_of_lion_moves_by_lr(rng):
    p = np.zeros(5)
    lion = Lion([p], lr=0.25)
    for _ in range(10):
        before = p.copy()
        lion.step([rng.normal(size=5)])
        assert_allclose(abs(p - before), 0.25)


@given(rng=seeds)
def test_the_divisor_of_amsgrad_never_falls(rng):
    p = np.zeros(3)
    rule = AMSGrad([p])
    before = np.zeros(3)
    for _ in range(20):
        rule.step([rng.normal(size=3)])
        assert (rule.largest[0] >= before).all()
        assert (rule.largest[0] >= rule.v[0]).all()
        before = rule.largest[0].copy()


def test_the_steps_of_amsgrad_grow_by_its_correction():
    p, q = np.zeros(1), torch.nn.Parameter(torch.zeros(1))
    ours = AMSGrad([p], lr=1.0, betas=(0.0, 0.999))
    theirs = torch.optim.Adam([q], lr=1.0, betas=(0.0, 0.999), amsgrad=True)
    steps = []
    for t in range(1000):
        before, g = p.copy(), 1.0 if t == 0 else 0.01
        q.grad = torch.tensor([g])
        ours.step([np.array([g])])
        theirs.step()
        steps.append(before[0] - p[0])
    assert_allclose(p, q.detach())
    assert steps[999] > 10 * steps[1]


@pytest.mark.parametrize("rule", [GD, Momentum, Adam])
def test_weight_decay_is_a_penalty(rule):
    rng = np.random.default_rng(1)
    p, q = (np.array([1.0, -2.0]) for _ in range(2))
    a, b = rule([p], lr=0.1, weight_decay=0.3), rule([q], lr=0.1)
    for _ in range(5):
        g = rng.normal(size=2)
        a.step([g])
        b.step([g + 0.3 * q])
        assert_allclose(p, q)


@pytest.mark.parametrize("rule", [AdamW, Lion])
def test_decoupled_decay_shrinks_without_a_gradient(rule):
    p = np.array([1.0, -2.0])
    rule([p], lr=0.1, weight_decay=0.5).step([np.zeros(2)])
    assert_allclose(p, [0.95, -1.9])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_changes_in_place_and_keeps_the_precision(rule, dtype):
    p = np.ones((2, 3), dtype=dtype)
    q = torch.ones(2, 3, dtype=torch.from_numpy(p).dtype)
    q = torch.nn.Parameter(q)
    ours, twin = rule([p], lr=0.1), rule([q], lr=0.1)
    kept = p
    for _ in range(3):
        ours.step([np.full((2, 3), 2, dtype=dtype)])
        q.grad = torch.full_like(q, 2)
        twin.step()
    assert p is kept
    assert p.dtype == dtype
    assert all(state.dtype == dtype for state in ours.state)
    assert (p < 1).all()
    assert_allclose(p, q.detach(), rtol=1e-6)


@pytest.mark.parametrize(
    ("rule", "arrays"),
    [
        (GD, 0),
        (Momentum, 1),
        (Nesterov, 1),
        (AdaGrad, 1),
        (RMSProp, 1),
        (Adadelta, 2),
        (Adam, 2),
        (AdaMax, 2),
        (NAdam, 2),
        (AMSGrad, 3),
        (AdamW, 2),
        (Lion, 1),
    ],
)
def test_state_size_by_hand(rule, arrays):
    numbers = [np.ones((2, 3), dtype=np.float32), np.ones(4, dtype=np.float32)]
    assert rule(numbers, lr=0.1).state_size() == arrays * 10 * 4
    tensors = [torch.nn.Parameter(torch.ones(5, dtype=torch.float64))]
    assert rule(tensors, lr=0.1).state_size() == arrays * 5 * 8


def carrying(*gradients):
    """Return parameters that carry these gradients."""
    parameters = [Parameter(np.zeros_like(g)) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g
    return parameters


@given(rng=seeds, scale=st.floats(1e-3, 1e3), norm=st.floats(0.1, 10))
def test_clip_equals_torch(rng, scale, norm):
    ours = carrying(*(np.array(scale * rng.normal(size=shape)) for shape in SHAPES))
    want = [torch.zeros(shape, dtype=torch.float64) for shape in SHAPES]
    for p, q in zip(want, ours, strict=True):
        p.grad = torch.tensor(q.grad)
    total = torch.nn.utils.clip_grad_norm_(want, norm)
    assert_allclose(clip(ours, norm), total)
    for p, q in zip(want, ours, strict=True):
        assert_allclose(q.grad, p.grad, rtol=1e-4)  # they divide by norm + 1e-6
    assert clip(ours, norm) <= norm * (1 + 1e-12)


@pytest.mark.parametrize(
    ("gradients", "norm", "total", "clipped"),
    [
        ([[3.0], [4.0]], 1.0, 5.0, [[0.6], [0.8]]),
        ([np.float32([3e30, 4e30])], 1.0, 5e30, [[0.6, 0.8]]),
        ([np.full(4, 1.7e308)], 1.0, np.inf, [[0.5] * 4]),  # no float, but they are
        ([[3e-310, 4e-310]], 1e-310, 5e-310, [[6e-311, 8e-311]]),
        ([[0.0, 0.0], np.zeros((0, 3))], 1.0, 0.0, [[0.0, 0.0], np.zeros((0, 3))]),
        ([], 1.0, 0.0, []),
    ],
    ids=["3-4-5", "squares overflow", "sum overflows", "tiny", "zero", "none"],
)
def test_clip_by_hand(gradients, norm, total, clipped):
    idle = Parameter(np.zeros(2))
    parameters = carrying(*map(np.asarray, gradients))
    assert_allclose(clip([*parameters, idle], norm), total, rtol=1e-6)
    for p, want in zip(parameters, clipped, strict=True):
        assert_allclose(p.grad, want, rtol=1e-6)
    assert idle.grad is None


def test_clip_shortens_a_parameter_that_is_given_twice_once():
    (p,) = carrying(np.array([3.0, 4.0]))
    assert clip([p, p], 1.0) == 5
    assert_allclose(p.grad, [0.6, 0.8])


@pytest.mark.usefixtures("unchecked")
def test_clip_shortens_a_gradient_that_two_tensors_share_once():
    a, b = Parameter(np.zeros(2)), Parameter(np.zeros(2))
    (3 * (a + b)).sum().backward()
    assert_allclose(clip([a, b], 1.0), 6)
    assert_allclose(a.grad, [0.5, 0.5])
    assert_allclose(b.grad, [0.5, 0.5])


def test_clip_leaves_frozen_tensors_alone():
    frozen, free = torch.zeros(2), torch.nn.Parameter(torch.zeros(2))
    assert clip([frozen, free], 1.0) == 0
    free.grad = torch.tensor([3.0, 4.0])
    assert clip([frozen, free], 1.0) == 5
    assert_allclose(free.grad, [0.6, 0.8])


@pytest.mark.usefixtures("unchecked")
def test_parameters_without_a_gradient_stay():
    a, b = Parameter(np.ones(2)), Parameter(np.ones(2))
    rule = Adam([a, b], lr=0.1, weight_decay=0.5)
    (a * a).sum().backward()
    rule.step()
    assert (a.data < 1).all()
    assert (b.data == 1).all()
    rule.zero_grad()
    assert a.grad is None


RATES = [(Momentum, "beta"), (Nesterov, "beta"), (RMSProp, "alpha"), (Adadelta, "rho")]
KINDS = {
    "int64": np.zeros(1, dtype=int),
    "no array": 1.0,
    "torch.int32": torch.zeros(1, dtype=torch.int32),
}
P = np.zeros(1)
REFUSED = [
    ("Momentum: beta must lie in [0, 1)", Momentum, {"beta": convex_momentum}),
    *(
        (f"{rule.__name__}: {name} must lie in [0, 1); got {bad}", rule, {name: bad})
        for rule, name in RATES
        for bad in (1, -0.1, np.nan)
    ),
    *(
        (f"{rule.__name__}: betas must {must}", rule, {"betas": betas})
        for rule in (Adam, Lion)
        for betas, must in [
            ((0.9, 1.0), "lie in [0, 1); got 1.0"),
            (("a", "b"), "lie in [0, 1); got a"),
            (0.9, "be two numbers; got 0.9"),
            ((0.9,), "be two numbers; got (0.9,)"),
            ((0.9, 0.99, 0.999), "be two numbers; got (0.9, 0.99, 0.999)"),
        ]
    ),
    *(
        (f"{rule.__name__}: eps must be positive and finite", rule, {"eps": eps})
        for rule in (*ADAPTIVE, Adadelta)
        for eps in (0, -1e-8, np.inf, np.nan)
    ),
    *(
        (f"GD: lr must be positive and finite; got {lr}", GD, {"lr": lr})
        for lr in (0, np.inf, np.nan, "0.1")
    ),
    *(
        ("GD: weight_decay must lie in [0, ∞)", GD, {"weight_decay": decay})
        for decay in (-1, np.inf, np.nan)
    ),
    *(
        (
            f"GD: parameters must be arrays of floating point; got ['{kind}']",
            GD,
            {"parameters": [wrong]},
        )
        for kind, wrong in [*KINDS.items(), ("no array", np.float64(1))]
    ),
    ("GD: parameters must be arrays of floating point; got []", GD, {"parameters": []}),
    ("GD: parameters must differ", GD, {"parameters": [P, np.ones(2), P]}),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("message", "rule", "options"), REFUSED)
def test_refuses_constants(message, rule, options):
    with pytest.raises(ValueError, match=re.escape(message)):
        rule(**{"parameters": [P], "lr": 1, **options})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convex_momentum(-2), "convex_momentum: t must not be neg"),
        (
            lambda: Nesterov([P], lr=1, beta=lambda t: 2.0).step([P]),
            "Nesterov: beta must lie in [0, 1); got 2.0",
        ),
        (
            lambda: GD([P], lr=1).step([]),
            "GD: gradients must be arrays of the shapes [(1,)]; got []",
        ),
        (
            lambda: GD([P], lr=1).step([[1.0]]),
            "GD: gradients must be arrays of the shapes [(1,)]; got ['list']",
        ),
        (
            lambda: GD([P], lr=1).step(),
            "GD: gradients must be given where parameters are arrays",
        ),
        *(
            (
                lambda norm=norm: clip([Parameter(P)], norm),
                "clip: norm must be positive and finite",
            )
            for norm in (0, -1, np.inf, np.nan)
        ),
        *(
            (
                lambda g=g: clip(carrying(*map(np.array, g)), 1.0),
                "clip: gradients must be finite",
            )
            for bad in (np.nan, np.inf)
            for g in ([[1.0, bad]], [[bad], [1.0]])
        ),
        *(
            (lambda g=g: clip(g, 1.0), "Pass the parameters, not their gradients.")
            for g in (
                [],
                [P],
                [3.0],
                [Tensor(P)],
                [Parameter(P), P],
                [torch.full((3,), 100.0), torch.ones(2)],
            )
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_rule_says_how_it_updates():
    with pytest.raises(NotImplementedError):
        Optimizer([P], lr=1).step([P])


@pytest.mark.usefixtures("unchecked")
def test_arrays_take_gradients_from_a_generator_and_carry_none():
    p = np.ones(2)
    rule = GD([p], lr=0.5)
    rule.zero_grad()
    rule.step(2 * q for q in [np.ones(2)])
    assert_allclose(p, 0)


@pytest.mark.usefixtures("unchecked")
def test_a_tensor_is_trained():
    x = Tensor(np.array([3.0, -2.0]), requires_grad=True)
    rule = Nesterov([x], lr=0.1)
    for _ in range(200):
        rule.zero_grad()
        (x * x).sum().backward()
        rule.step()
    assert_allclose(x.data, 0, atol=1e-6)
