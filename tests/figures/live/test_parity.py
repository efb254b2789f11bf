"""What a page computes is what PyTorch and dlcore compute, number by number, in Chromium."""

import base64
import math
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from playwright.sync_api import Error
from torch.nn import functional as F

from dlcore.figures.live import as_script, quantised
from dlcore.optimization import optimizers
from dlcore.recurrence.recurrent import GRU, LSTM, RNN
from dlcore.transformers.attention import attend, causal_mask

# Typed arrays become lists, beside their names: f32 for Float32Array.
PLAIN = """globalThis.plain = (value) => {
  if (Array.isArray(value)) return value.map(plain);
  if (ArrayBuffer.isView(value)) return [...value];
  if (typeof value !== "object") return value;
  const kind = { Float32Array: "f32", Float64Array: "f64" }[value.data?.constructor.name];
  const parts = Object.entries(value).filter(([, part]) => typeof part !== "function");
  return { ...Object.fromEntries(parts.map(([key, part]) => [key, plain(part)])), kind };
};"""


@pytest.fixture(scope="module")
def page(blank):
    for script in (PLAIN, as_script("tensors"), as_script("learn")):
        blank.add_script_tag(content=script)
    return blank


def floats(a):
    """Store an array as bytes, which a page reads as float32."""
    numbers = np.asarray(a, dtype="<f4").tobytes()
    return {"shape": [*a.shape], "f32": base64.b64encode(numbers).decode()}


def in_page(page, expression, stored=None, **others):
    """Compute with tensors, by their names, and with other values."""
    names = ", ".join([*(stored or {}), *others])
    code = f"""([stored, others]) => {{
      const entries = Object.entries(stored).map(([k, v]) => [k, tensors.decode(v)]);
      const {{ {names} }} = {{ ...Object.fromEntries(entries), ...others }};
      return plain({expression});
    }}"""
    return page.evaluate(code, [stored or {}, others])


def as_torch(answer):
    return torch.tensor(answer["data"], dtype=torch.float64).reshape(answer["shape"])


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)


def attention(Q, K, V, mask=None, heads=1, off=()):
    Y, A = attend(*(heads_of(x, heads) for x in (Q, K, V)), mask)
    Y[[*off]] = 0
    return Y.transpose(0, 1).flatten(1), A


def recurrent(cell):
    """Add PyTorch's two biases as the page wants them."""

    def step(x, h, V, U, b, d=None):
        inner = torch.zeros_like(b)
        if d is not None:
            inner[-len(d) :] = d
        return cell(x, h, V, U, b, inner)

    return step


MASK = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
PICTURE, ROWS, MATRIX = (2, 7, 8), (4, 5), (3, 5)
QKV = {"Q": (4, 6), "K": (4, 6), "V": (4, 6)}
CROSS = {"Q": (3, 6), "K": (5, 6), "V": (5, 4)}
KERNELS = {"x": PICTURE, "W": (3, 2, 3, 2), "b": (3,)}
CHANNELS = {"mean": (2,), "variance": (2,), "g": (2,), "b": (2,)}
CELL = {"x": (2, 3), "h": (2, 4)}


def weights(blocks):
    return {"V": (4 * blocks, 3), "U": (4 * blocks, 4), "b": (4 * blocks,)}


# What the page computes, what PyTorch does, and the shapes of what they are given.
LAYERS = {
    "dense": ("dense(x, W, b)", F.linear, {"x": ROWS, "W": MATRIX, "b": (3,)}),
    "dense-without-bias": ("dense(x, W)", F.linear, {"x": ROWS, "W": MATRIX}),
    "conv2d": ("conv2d(x, W, b)", F.conv2d, KERNELS),
    "conv2d-without-bias": (
        "conv2d(x, W)",
        F.conv2d,
        {"x": PICTURE, "W": (3, 2, 3, 2)},
    ),
    "conv2d-padding": (
        "conv2d(x, W, b, { padding: 2 })",
        lambda x, W, b: F.conv2d(x, W, b, padding=2),
        KERNELS,
    ),
    "conv2d-stride": (
        "conv2d(x, W, b, { stride: 3, padding: 1 })",
        lambda x, W, b: F.conv2d(x, W, b, stride=3, padding=1),
        KERNELS,
    ),
    "maxPool": ("maxPool(x)", lambda x: F.max_pool2d(x, 2), {"x": PICTURE}),
    "maxPool-3": ("maxPool(x, 3)", lambda x: F.max_pool2d(x, 3), {"x": PICTURE}),
    "avgPool": ("avgPool(x)", lambda x: F.avg_pool2d(x, 2), {"x": PICTURE}),
    "avgPool-3": ("avgPool(x, 3)", lambda x: F.avg_pool2d(x, 3), {"x": PICTURE}),
    "relu": ("relu(x)", F.relu, {"x": ROWS}),
    "gelu": ("gelu(x)", F.gelu, {"x": (30, 9)}),
    "tanh": ("tanh(x)", torch.tanh, {"x": ROWS}),
    "sigmoid": ("sigmoid(x)", torch.sigmoid, {"x": ROWS}),
    "softmax": ("softmax(x)", lambda x: x.softmax(-1), {"x": PICTURE}),
    "softmax-temperature": (
        "softmax(x, 0.5)",
        lambda x: (x / 0.5).softmax(-1),
        {"x": ROWS},
    ),
    "logSoftmax": ("logSoftmax(x)", lambda x: x.log_softmax(-1), {"x": PICTURE}),
    "logSoftmax-temperature": (
        "logSoftmax(x, 2)",
        lambda x: (x / 2).log_softmax(-1),
        {"x": ROWS},
    ),
    "layerNorm": (
        "layerNorm(x, g, b)",
        lambda x, g, b: F.layer_norm(x, (5,), g, b),
        {"x": ROWS, "g": (5,), "b": (5,)},
    ),
    "layerNorm-eps": (
        "layerNorm(x, g, b, 0.5)",
        lambda x, g, b: F.layer_norm(x, (5,), g, b, 0.5),
        {"x": ROWS, "g": (5,), "b": (5,)},
    ),
    "rmsNorm": (
        "rmsNorm(x, g)",
        lambda x, g: F.rms_norm(x, (5,), g, 1e-6),
        {"x": ROWS, "g": (5,)},
    ),
    "rmsNorm-eps": (
        "rmsNorm(x, g, 0.5)",
        lambda x, g: F.rms_norm(x, (5,), g, 0.5),
        {"x": ROWS, "g": (5,)},
    ),
    "batchNorm": (
        "batchNorm(x, mean, variance, g, b)",
        lambda x, *others: F.batch_norm(x[None], *others)[0],
        {"x": PICTURE, **CHANNELS},
    ),
    "batchNorm-eps": (
        "batchNorm(x, mean, variance, g, b, 0.5)",
        lambda x, *others: F.batch_norm(x[None], *others, eps=0.5)[0],
        {"x": PICTURE, **CHANNELS},
    ),
    "attention": ("attention(Q, K, V)", attention, QKV),
    "attention-heads": (
        "attention(Q, K, V, { heads: 2 })",
        lambda *qkv: attention(*qkv, heads=2),
        CROSS,
    ),
    "attention-causal": (
        "attention(Q, K, V, { heads: 3, causal: true })",
        lambda *qkv: attention(*qkv, causal_mask(4), heads=3),
        QKV,
    ),
    "attention-causal-with-a-past": (
        "attention(Q, K, V, { causal: true })",
        lambda *qkv: attention(*qkv, causal_mask(3, past=2)),
        CROSS,
    ),
    "attention-mask": (
        f"attention(Q, K, V, {{ heads: 2, mask: tensors.decode({MASK.tolist()}) }})",
        lambda *qkv: attention(*qkv, MASK.bool(), heads=2),
        CROSS,
    ),
    "attention-off": (
        "attention(Q, K, V, { heads: 3, off: [0, 2] })",
        lambda *qkv: attention(*qkv, heads=3, off=[0, 2]),
        QKV,
    ),
    "embedding": (
        "embedding([2, 0, 2], W)",
        lambda W: F.embedding(torch.tensor([2, 0, 2]), W),
        {"W": MATRIX},
    ),
    "add": ("add(x, y)", torch.add, {"x": ROWS, "y": ROWS}),
    "add-to-each": ("add(x, y)", torch.add, {"x": (2, 4, 5), "y": ROWS}),
    "rnnCell": (
        "rnnCell(x, h, { V, U, b })",
        recurrent(torch.rnn_tanh_cell),
        CELL | weights(1),
    ),
    "lstmCell": (
        "lstmCell(x, [h, c], { V, U, b })",
        lambda x, h, c, *p: recurrent(torch.lstm_cell)(x, (h, c), *p),
        CELL | {"c": (2, 4)} | weights(4),
    ),
    "gruCell": (
        "gruCell(x, h, { V, U, b, d })",
        recurrent(torch.gru_cell),
        CELL | weights(3) | {"d": (4,)},
    ),
    "gruCell-without-d": (
        "gruCell(x, h, { V, U, b })",
        recurrent(torch.gru_cell),
        CELL | weights(3),
    ),
}


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_equal_those_of_torch(page, layer, kind):
    expression, theirs, shapes = LAYERS[layer]
    rng = np.random.default_rng(len(layer))
    given = {name: rng.normal(0, 2, shape) for name, shape in shapes.items()}
    if "variance" in given:
        given["variance"] **= 2
    if kind == "f32":
        given = {name: np.float32(a) for name, a in given.items()}
    stored = {n: floats(a) if kind == "f32" else a.tolist() for n, a in given.items()}
    answer = in_page(page, f"tensors.{expression}", stored)
    wanted = theirs(*(torch.tensor(a, dtype=torch.float64) for a in given.values()))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    parts = [answer["out"], answer["weights"]] if "out" in answer else answer
    parts = parts if isinstance(parts, list) else [parts]
    rtol, atol = {"f32": (1e-4, 1e-6), "f64": (1e-12, 1e-13)}[kind]
    for ours, other in zip(parts, wanted, strict=True):
        assert ours["kind"] == kind, "a layer answers in the precision of its input"
        torch.testing.assert_close(as_torch(ours), other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("layer", [RNN, LSTM, GRU])
def test_cells_run_the_weights_of_dlcore(page, layer):
    rng = torch.Generator().manual_seed(0)
    ours = layer(3, 4, generator=rng)
    for p in ours.parameters():
        p.data = torch.randn(p.shape, generator=rng)
    x = torch.randn(2, 5, 3, generator=rng)
    _, state = ours(x)
    cell, many = f"{layer.__name__.lower()}Cell", len(state) > 1
    loop = f"""times.reduce((state, x) =>
      tensors.{cell}(tensors.decode(x), state, weights), {"[h, h]" if many else "h"})"""
    stored = {name: floats(p.detach()) for name, p in ours.named_parameters()}
    stored["h"] = floats(torch.zeros(2, 4))
    expression = loop.replace("weights", f"{{ {', '.join(ours._parameters)} }}")
    times = [floats(x[:, t]) for t in range(5)]
    answer = in_page(page, expression, stored, times=times)
    for theirs, part in zip(state, answer if many else [answer], strict=True):
        torch.testing.assert_close(
            as_torch(part).float(), theirs.detach(), rtol=1e-4, atol=1e-6
        )


def test_argmax_finds_the_largest_of_each_row(page):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    wanted = x.reshape(6, 4).argmax(axis=1).tolist()
    assert in_page(page, "tensors.argmax(x)", {"x": x.tolist()}) == wanted


def test_argmax_takes_the_first_of_equals(page):
    assert in_page(page, "tensors.argmax(x)", {"x": [0.0, 3.0, -4.0, 3.0]}) == [1]


def test_gelu_is_exact_far_from_zero(page):
    x = np.linspace(-12, 12, 97)
    wanted = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
    found = in_page(page, "tensors.gelu(x)", {"x": x.tolist()})["data"]
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("function", ["softmax", "logSoftmax"])
def test_softmax_sums_to_one_and_forgets_a_shift(page, function):
    x = np.random.default_rng(0).normal(size=(3, 4))
    code = f"[x, y].map((z) => tensors.{function}(z))"
    stored = {"x": x.tolist(), "y": (x + 1000).tolist()}
    first, shifted = (as_torch(part) for part in in_page(page, code, stored))
    p = first if function == "softmax" else first.exp()
    torch.testing.assert_close(p.sum(1), torch.ones(3, dtype=p.dtype))
    torch.testing.assert_close(first, shifted, rtol=1e-9, atol=1e-12)


def test_causal_attention_does_not_look_ahead(page):
    x = np.random.default_rng(0).normal(size=(5, 6))
    later = x.copy()
    later[3:] += 1
    code = (
        "[x, y].map((z) => tensors.attention(z, z, z, { heads: 2, causal: true }).out)"
    )
    answer = in_page(page, code, {"x": x.tolist(), "y": later.tolist()})
    first, changed = map(as_torch, answer)
    assert torch.equal(first[:3], changed[:3])
    assert not torch.isclose(first[3:], changed[3:]).any()


BYTES = base64.b64encode(bytes([127, 0x80, 0xFF, 2, 0, 64])).decode()
STORED = {
    "a number": (2.5, [], [2.5]),
    "a list": ([0.1, 2], [2], [0.1, 2.0]),
    "lists": ([[1, 2, 3], [4, 5, 6]], [2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "no rows": ([], [0], []),
    "truth values": ([[True, False]], [1, 2], [1.0, 0.0]),
    "f32": ({"shape": [2, 1], "f32": "AACAPwAAIMA="}, [2, 1], [1.0, -2.5]),
    "i8": (
        {"shape": [3, 2], "i8": BYTES, "scales": [1.0, 0.5, 0.25]},
        [3, 2],
        [127.0, -128.0, -0.5, 1.0, 0.0, 16.0],
    ),
    "u8": ({"shape": [2, 3], "u8": BYTES}, [2, 3], [127.0, 128.0, 255.0, 2.0, 0, 64.0]),
    "i8 with scales in bytes": (
        {"shape": [2, 3], "i8": BYTES, "scales": {"shape": [2], "f32": "AACAPwAAIMA="}},
        [2, 3],
        [127.0, -128.0, -1.0, -5.0, -0.0, -160.0],
    ),
    "i8 with one scale": (
        {"shape": [6], "i8": BYTES, "scales": [0.5]},
        [6],
        [63.5, -64.0, -0.5, 1.0, 0.0, 32.0],
    ),
}


@pytest.mark.parametrize("form", STORED)
def test_stored_numbers_are_read(page, form):
    stored, shape, numbers = STORED[form]
    kind = "f32" if isinstance(stored, dict) else "f64"
    wanted = {"shape": shape, "data": numbers, "kind": kind}
    assert in_page(page, "tensors.decode(form)", form=stored) == wanted


def test_whole_numbers_times_scales_are_exact(page):
    W = np.random.default_rng(0).normal(size=(4, 3, 2))
    stored = quantised(W)
    q = np.frombuffer(base64.b64decode(stored["i8"]), np.int8).reshape(4, -1)
    wanted = np.float32(q * np.array(stored["scales"])[:, None]).ravel()
    found = in_page(page, "W", {"W": stored})
    assert found["data"] == wanted.tolist()
    assert found["shape"] == [4, 3, 2]


def test_a_tensor_is_decoded_already(page):
    assert in_page(page, "tensors.decode(x) === x", {"x": [1.0]}) is True


REFUSED = {
    "tensors.tensor([2, 2], [1])": r"tensor: data must have 4 numbers .*; got 1\.",
    "tensors.decode([[1], [1, 2]])": "decode: lists must be as long as .* neighbours",
    "tensors.decode({ shape: [3], i8: 'AAAA', scales: [1, 2] })": (
        "decode: scales must be 1 or 3, one for each row; got 2"
    ),
    "tensors.dense(row, tensors.decode([[1]]))": "dense: x must have 1 columns",
    "tensors.conv2d(cube, kernels)": "conv2d: x must have 2 channels",
    "tensors.conv2d(cube, tensors.decode([[[[1], [1]]]]))": "conv2d: W must fit into x",
    "tensors.softmax(row, 0)": "softmax: temperature must be positive; got 0",
    "tensors.attention(row, row, row, { heads: 2 })": "attention: heads must divide",
    "tensors.attention(row, cube, row)": "attention: K must have the shape",
    "tensors.embedding([1], row)": "embedding: tokens .* from 0 to 0; got 1",
    "tensors.embedding([-1], row)": "embedding: tokens .* from 0 to 0; got -1",
    "tensors.add(row, tensors.decode([1]))": "add: y must have the last axes",
    "learn.adam({ lr: 0 })": "optimizer: lr must be positive; got 0",
    "learn.sgd({})": "optimizer: lr must be positive; got undefined",
    "learn.network([1, 1], { activation: 'cube' })": "activation must be one of tanh, ",
    "learn.network([1, 1]).cost([[1]], [1], 'cubes')": "loss must be one of logistic, ",
    "learn.network([1, 1]).cost([[1]], [0], 'logistic')": "y must be labels 1 and -1",
    "learn.network([1, 2]).cost([[1]], [1], 'logistic')": "have one output; got 2",
    "learn.network([1, 1]).cost([[1]], [1, 1], 'squares')": "one target for each of 1",
    "learn.network([1, 2]).cost([[1]], [1], 'squares')": "y must have 2 numbers; got 1",
    "learn.network([1, 2]).cost([[1]], [2], 'cross-entropy')": "from 0 to 1; got 2",
    "learn.network([1, 2]).forward([1, 2])": "must have 1 numbers",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_does_not_fit_is_refused(page, expression):
    stored = {"row": [[1.0, 2.0, 3.0]], "cube": [[[1.0]]]}
    stored["kernels"] = [[[[1.0]], [[1.0]]]]
    with pytest.raises(Error, match=REFUSED[expression]):
        in_page(page, expression, stored)


def drawn(widths, rng):
    """Draw weights of a dense network: W and b of each layer."""
    return [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairwise(widths)]


PHI = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}
PHI["identity"] = lambda x: x
COST = {
    "logistic": lambda o, y: F.softplus(-y * o[:, 0]).mean(),
    "squares": lambda o, y: ((o - y.reshape(o.shape)) ** 2).sum(1).mean() / 2,
    "cross-entropy": lambda o, y: F.cross_entropy(o, y.long()),
}


def scores(parameters, X, phi):
    *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
    for W, b in hidden:
        X = phi(F.linear(X, W, b))
    return F.linear(X, *last)


def leaves(pairs):
    return [torch.tensor(a, requires_grad=True) for pair in pairs for a in pair]


def as_lists(pairs):
    return [[W.tolist(), b.tolist()] for W, b in pairs]


def targets(loss, rng, s, outputs):
    kinds = {
        "logistic": rng.choice([-1.0, 1.0], s),
        "squares": rng.normal(size=(s, outputs)),
        "cross-entropy": rng.integers(0, outputs, s),
    }
    return kinds[loss]


NET = "learn.network(widths, { activation, weights })"


@pytest.mark.parametrize("activation", PHI)
@pytest.mark.parametrize("loss", COST)
def test_gradients_equal_those_of_autograd(page, activation, loss):
    rng = np.random.default_rng(len(activation + loss))
    widths = [2, 5, 4, 1 if loss == "logistic" else 3]
    pairs, X = drawn(widths, rng), rng.normal(size=(7, 2))
    y = targets(loss, rng, 7, widths[-1])
    ours = in_page(
        page,
        f"""[{NET}].flatMap((net) => {{
          const found = net.gradient(X, y, loss);
          return [net.forward(X), net.cost(X, y, loss), found.cost, found.gradients];
        }})""",
        widths=widths,
        activation=activation,
        weights=as_lists(pairs),
        X=X.tolist(),
        y=y.tolist(),
        loss=loss,
    )
    outputs, only_cost, cost, gradients = ours
    parameters = leaves(pairs)
    o = scores(parameters, torch.tensor(X), PHI[activation])
    wanted = COST[loss](o, torch.tensor(y))
    wanted.backward()
    close = {"rtol": 1e-9, "atol": 1e-13}
    torch.testing.assert_close(as_torch(outputs), o.detach(), **close)
    assert cost == only_cost == pytest.approx(wanted.item(), rel=1e-9)
    for ours_, p in zip(gradients, parameters, strict=True):
        torch.testing.assert_close(as_torch(ours_), p.grad, **close)


def test_a_point_alone_has_the_outputs_it_has_in_a_batch(page):
    rng = np.random.default_rng(0)
    weights, X = as_lists(drawn([2, 3, 2], rng)), rng.normal(size=(4, 2)).tolist()
    code = (
        f"[{NET}].map((net) => [net.forward(X).data, X.map((x) => net.forward(x))])[0]"
    )
    given = {"widths": [2, 3, 2], "activation": "tanh", "weights": weights, "X": X}
    batch, points = in_page(page, code, **given)
    assert batch == [v for point in points for v in point]


def test_losses_of_large_scores_are_finite(page):
    code = """[1000, -1000].map((b) => {
      const net = learn.network([1, 1], { weights: [[[[0]], [b]]] });
      const { cost, gradients } = net.gradient([[1]], [1], "logistic");
      return [cost, gradients[1].data[0]];
    })"""
    assert in_page(page, code) == [[0, 0], [1000, -1]]


def test_a_network_does_not_change_the_weights_it_is_given(page):
    code = """[[[tensors.decode([[1]]), tensors.decode([1])]]].map((weights) => {
      const net = learn.network([1, 1], { weights });
      learn.sgd({ lr: 1 }).step(net.parameters, net.parameters);
      return [weights[0][0].data[0], net.parameters[0].data[0]];
    })[0]"""
    assert in_page(page, code) == [1, 0]


RULES = {
    "gd": ("sgd({ lr: 0.5 })", lambda p: optimizers.GD(p, 0.5)),
    "momentum": (
        "sgd({ lr: 0.1, momentum: 0.8 })",
        lambda p: optimizers.Momentum(p, 0.1, 0.8),
    ),
    "nesterov": ("nesterov({ lr: 0.1 })", lambda p: optimizers.Nesterov(p, 0.1)),
    "nesterov-constants": (
        "nesterov({ lr: 0.1, momentum: 0.7 })",
        lambda p: optimizers.Nesterov(p, 0.1, 0.7),
    ),
    "rmsprop": ("rmsprop()", optimizers.RMSProp),
    "rmsprop-constants": (
        "rmsprop({ lr: 0.02, alpha: 0.8, eps: 0.1 })",
        lambda p: optimizers.RMSProp(p, 0.02, 0.8, 0.1),
    ),
    "adam": ("adam()", optimizers.Adam),
    "adam-constants": (
        "adam({ lr: 0.05, betas: [0.8, 0.95], eps: 0.1 })",
        lambda p: optimizers.Adam(p, 0.05, (0.8, 0.95), 0.1),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_optimizers_take_the_steps_of_dlcore(page, name):
    rng = np.random.default_rng(1)
    pairs, X = drawn([2, 8, 1], rng), rng.normal(size=(20, 2))
    y, (rule, make) = targets("logistic", rng, 20, 1), RULES[name]
    code = f"""[{NET}].map((net) => {{
      const rule = learn.{rule}, path = [];
      for (let t = 0; t < 30; t++) {{
        rule.step(net.parameters, net.gradient(X, y, "logistic").gradients);
        path.push(net.parameters.flatMap((p) => [...p.data]));
      }}
      return path;
    }})[0]"""
    given = {"widths": [2, 8, 1], "activation": "tanh", "weights": as_lists(pairs)}
    path = in_page(page, code, **given, X=X.tolist(), y=y.tolist())
    parameters = leaves(pairs)
    optimizer = make(parameters)
    for t, ours in enumerate(path):
        optimizer.zero_grad()
        o = scores(parameters, torch.tensor(X), torch.tanh)
        COST["logistic"](o, torch.tensor(y)).backward()
        optimizer.step()
        theirs = torch.cat([p.detach().flatten() for p in parameters]).tolist()
        said = f"step {t + 1}"
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10, err_msg=said)
    assert len(path) == 30


def test_each_parameter_has_a_memory_of_its_own(page):
    code = """[[{ data: [0] }, { data: [0] }]].map((p) => {
      const rule = learn.sgd({ lr: 1, momentum: 0.5 }), g = [{ data: [1] }, { data: [2] }];
      rule.step(p, g);
      rule.step(p, g);
      return p.map(({ data }) => data[0]);
    })[0]"""
    assert in_page(page, code) == [-2.5, -5]


def test_the_step_size_may_change_on_the_way(page):
    code = """[{ data: [0] }].map((p) => {
      const rule = learn.sgd({ lr: 1 }), g = { data: [1] };
      rule.step([p], [g]);
      rule.lr = 0.25;
      rule.step([p], [g]);
      return p.data;
    })[0]"""
    assert in_page(page, code) == [-1.25]


def mulberry32(seed):
    """Yield the numbers of Tommy Ettinger's generator, whole numbers taken modulo 2³²."""
    whole = 2**32
    while True:
        seed = (seed + 0x6D2B79F5) % whole
        t = (seed ^ (seed >> 15)) * (seed | 1) % whole
        t ^= (t + (t ^ (t >> 7)) * (t | 61)) % whole
        yield (t ^ (t >> 14)) / whole


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 5])
def test_numbers_repeat_with_their_seed(page, seed):
    code = "[learn.rng(seed)].map((random) => Array.from({ length: 50 }, random))[0]"
    assert in_page(page, code, seed=seed) == [*islice(mulberry32(seed), 50)]


def test_normal_numbers_are_made_of_two_uniform_ones(page):
    code = """[learn.rng(3)].map((random) =>
      Array.from({ length: 2000 }, () => learn.normal(random)))[0]"""
    found, uniform = in_page(page, code), mulberry32(3)
    pairs = [(next(uniform), next(uniform)) for _ in range(2000)]
    tau = 2 * math.pi
    wanted = [math.sqrt(-2 * math.log(1 - u)) * math.cos(tau * v) for u, v in pairs]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    assert abs(np.mean(found)) < 0.1
    assert abs(np.var(found) - 1) < 0.1


def test_weights_are_drawn_as_in_dlcore(page):
    code = "learn.network([50, 40, 30], { random: learn.rng(0) }).parameters"
    W, b, U, c = map(as_torch, in_page(page, code))
    assert [*W.shape, *b.shape, *U.shape, *c.shape] == [40, 50, 40, 30, 40, 30]
    assert not b.any()
    assert not c.any()
    assert W.var().item() == pytest.approx(2 / 50, rel=0.1)
    assert U.var().item() == pytest.approx(2 / 40, rel=0.1)


def test_the_same_seed_draws_the_same_weights(page):
    code = "learn.network([3, 2], { random: learn.rng(seed) }).parameters[0].data"
    first, again, other = (in_page(page, code, seed=seed) for seed in (5, 5, 6))
    assert first == again != other
