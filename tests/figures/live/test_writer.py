"""A transformer that writes, in Chromium: dlcore's numbers, whole and without its parts."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from stored import floats, whole
from torch.nn.functional import cross_entropy

from dlcore.figures.live import as_script, stored_weights
from dlcore.recurrence.decoding import nucleus, tempered, top_k
from dlcore.transformers.gpt import GPT

LETTERS = " abcdefghijklmnopqrstuvwxyz"
SIGNS = LETTERS + "/"
CONTEXT, HEADS, LAYERS, WIDTH = 16, 2, 2, 12


@pytest.fixture(scope="module")
def net():
    """A small model with weights far from zero, so that no part of it is idle."""
    source = torch.Generator().manual_seed(1)
    net = GPT(28, CONTEXT, WIDTH, HEADS, LAYERS, generator=source).double()
    for p in net.parameters():
        p.data += 0.4 * torch.randn(p.shape, generator=source, dtype=p.dtype)
        p.data = p.data.float().double()
    return net.eval()


def without(net, mask=True, places=True, off=()):
    """Return what reads a row of tokens, without some parts of the model."""
    net = deepcopy(net)
    if not places:
        net.places.E.data[:] = 0
    for name in off:
        layer, head = map(int, name.split("."))
        d = net.d_model // HEADS
        W_O = net.stack.blocks[layer].attention.W_O.weight
        W_O.data[:, head * d : (head + 1) * d] = 0

    @torch.no_grad()
    def read(tokens):
        x = torch.tensor([tokens])
        if mask:
            return net(x)[0].log_softmax(1)
        return (net.stack(net.enter(x)) @ net.embed.E.T)[0].log_softmax(1)

    return read


PARTS = {
    "nothing": {},
    "the mask": {"mask": False},
    "the positions": {"places": False},
    "a head": {"off": ["1.0"]},
    "both heads of a layer": {"off": ["0.0", "0.1"]},
    "all of it": {"mask": False, "places": False, "off": ["0.1", "1.0"]},
}


@pytest.fixture(scope="module")
def page(blank):
    for name in ("tensors", "transformer", "decoding"):
        blank.add_script_tag(content=as_script(name))
    return blank


READ = """([net, heads, tokens, parts]) => {
  const model = transformer.gpt(net, heads), { logs, weights } = model.read(tokens, parts);
  return { logs: [...logs.data], loss: transformer.meanLoss(logs, tokens),
    weights: weights.map((w) => [...w.data]), sizes: [model.context, model.tokens, model.layers] };
}"""


def row(length, seed=0):
    return np.random.default_rng(seed).integers(28, size=length).tolist()


@pytest.mark.parametrize("parts", PARTS)
def test_log_probabilities_and_losses_are_those_of_dlcore(page, net, parts):
    for T in (1, 5, CONTEXT):
        tokens = row(T, seed=T)
        found = page.evaluate(READ, [floats(net), HEADS, tokens, PARTS[parts]])
        assert found["sizes"] == [CONTEXT, 28, LAYERS]
        wanted = without(net, **PARTS[parts])(tokens)
        ours = torch.tensor(found["logs"], dtype=torch.float64).view(T, 28)
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-6)
        if T > 1:
            loss = cross_entropy(wanted[:-1], torch.tensor(tokens[1:])).item()
            assert found["loss"] == pytest.approx(loss, rel=1e-4)


def test_no_two_ways_to_leave_parts_out_are_alike(net):
    tokens = row(CONTEXT)
    found = [without(net, **parts)(tokens)[-2] for parts in PARTS.values()]
    for k, one in enumerate(found):
        for other in found[:k]:
            assert (one - other).abs().max() > 0.01


def test_attention_is_that_of_dlcore(page, net):
    tokens = row(9)
    found = page.evaluate(READ, [floats(net), HEADS, tokens, {}])["weights"]
    seen = []
    for block in net.stack.blocks:
        block.attention.register_forward_hook(lambda m, x, out: seen.append(out[1]))
    without(net)(tokens)  # a copy, with the hooks
    assert len(seen) == LAYERS
    for ours, theirs in zip(found, seen, strict=True):
        np.testing.assert_allclose(ours, theirs.flatten(), rtol=1e-4, atol=1e-6)


def test_whole_numbers_give_the_answers_of_dlcore(page, net):
    for seed in range(20):
        tokens = row(CONTEXT, seed)
        given = [stored_weights(net.state_dict()), HEADS, tokens, {}]
        ours = np.array(page.evaluate(READ, given)["logs"]).reshape(CONTEXT, 28)
        wanted = without(whole(net))(tokens)
        assert ours.argmax(axis=1).tolist() == wanted.argmax(dim=1).tolist()


def logits(seed):
    digits = 1 if seed % 2 else 8  # with ties, and without
    return np.round(np.random.default_rng(seed).normal(0, 2, 28), digits)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_kept_is_what_dlcore_keeps(page, seed):
    x = logits(seed)
    heat = 0.2 + 0.3 * seed
    for k, p in [(1, 1.0), (5, 1.0), (28, 0.5), (28, 0.95), (28, 1.0), (9, 0.8)]:
        code = """([x, heat, k, p]) => {
          const { nucleus, tempered, topK } = decoding;
          return [...nucleus(topK(tempered(Float64Array.from(x), heat), k), p)].map(
            (v) => (v > -Infinity ? v : null));
        }"""
        ours = page.evaluate(code, [x.tolist(), heat, k, p])
        left = nucleus(top_k(tempered(torch.tensor(x), heat), k), p).tolist()
        kept = [v is not None for v in ours]
        assert kept == [v > -np.inf for v in left]
        pairs = zip(ours, left, strict=True)
        assert all(v == pytest.approx(w) for v, w in pairs if v is not None)


def test_tokens_are_drawn_with_their_probabilities(page):
    code = """([x, count]) => Array.from({ length: count }, (_, k) =>
      decoding.sample(Float64Array.from(x, (v) => v ?? -Infinity), (k + 0.5) / count))"""
    x = [0.0, None, 1.0, -2.0]
    drawn = np.bincount(page.evaluate(code, [x, 10_000]), minlength=4) / 10_000
    odds = np.array([1, 0, np.e, np.exp(-2)])
    np.testing.assert_allclose(drawn, odds / odds.sum(), atol=1e-4)


def test_a_full_context_is_read_again_from_its_younger_half(page):
    kept, wanted = 0, []
    for _ in range(200):  # as the page on GPT writes
        kept = CONTEXT // 2 if kept == CONTEXT else kept + 1
        wanted.append(kept)
    code = """(context) =>
      Array.from({ length: 200 }, (_, k) => transformer.inSight(k + 1, context))"""
    assert page.evaluate(code, CONTEXT) == wanted


@pytest.fixture(params=["desktop", "phone"])
def figure(show, net, request):
    size = {"desktop": (1300, 900), "phone": (390, 844)}[request.param]
    here = {"net": stored_weights(net.state_dict()), "heads": HEADS}
    return show("gpt", size, **here, letters=LETTERS, start="in the ")


def tokens_of(text):
    """Return the tokens that the figure reads."""
    tokens = [27, *map(SIGNS.index, text)]
    seen = len(tokens)
    if seen > CONTEXT:
        seen = CONTEXT // 2 + (seen - CONTEXT - 1) % (CONTEXT // 2 + 1)
    return tokens[-seen:]


def numbers(here, name):
    return [float(v) for v in here.get_attribute(f"data-{name}").split()]


def test_bars_are_the_next_characters_of_a_typed_text(figure, net):
    here, field = figure.locator(".live"), figure.locator("textarea")
    for text in ("in the ", "a", "", "the lord said unto moses speak"):
        field.fill(text)
        logs = without(whole(net))(tokens_of(text))[-1]
        np.testing.assert_allclose(numbers(here, "p"), logs.exp(), rtol=1e-3, atol=1e-6)
    field.fill("In, the-Béginning")
    expect(field).to_have_value("in the bginning")
    said = figure.locator(".live-status").first
    expect(said).to_contain_text("Dropped: “,”, “é”.")
    field.press("Enter")
    expect(said).to_contain_text("Dropped: a new line.")
    field.press("s")
    expect(field).to_have_value("in the bginnings")
    expect(said).not_to_contain_text("Dropped")


def test_sliders_keep_the_arrow_keys_of_jupyterlab(figure):
    for slider in figure.locator("input[type=range]").all():
        expect(slider).to_have_attribute("data-lm-suppress-shortcuts", "")


def test_rules_cut_bars_as_those_of_dlcore(figure, net):
    here = figure.locator(".live")
    logs = without(whole(net))(tokens_of("in the "))[-1]
    for name, value in [("temperature", "1.7"), ("top-k", "9"), ("nucleus p", "0.6")]:
        figure.get_by_role("spinbutton", name=name).fill(value)
    warm = tempered(logs, 1.7)
    left = nucleus(top_k(warm, 9), 0.6)
    assert numbers(here, "kept") == torch.nonzero(left > -torch.inf).flatten().tolist()
    np.testing.assert_allclose(numbers(here, "p"), warm.softmax(0), rtol=1e-3)
    faded = figure.locator(".live-bars .live-faded")
    expect(faded).to_have_count(28 - len(numbers(here, "kept")))
    figure.get_by_role("button", name="largest first").press("Enter")
    places = figure.evaluate(
        """() => [...document.querySelectorAll(".live-bars > g[transform]")].map(
          (g) => Number(g.getAttribute("transform").match(/[\\d.]+/)[0]))"""
    )
    assert np.argsort(places).tolist() == warm.argsort(descending=True).tolist()
    slider = figure.get_by_role("slider", name="temperature")
    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "0.10")
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "4.00")


def test_switches_show_the_loss_before_and_after(figure, net):
    here, text = figure.locator(".live"), "in the begin"
    figure.locator("textarea").fill(text)
    tokens = tokens_of(text)

    def loss(**parts):
        logs = without(whole(net), **parts)(tokens)
        return cross_entropy(logs[:-1], torch.tensor(tokens[1:])).item()

    switches = {
        "mask": {"mask": False},
        "positions": {"places": False},
        "head 2 of layer 1": {"off": ["0.1"]},
        "head 1 of layer 2": {"off": ["1.0"]},
    }
    before = pytest.approx(loss(), rel=1e-3)
    assert numbers(here, "before") == numbers(here, "after") == [before]
    said = figure.locator(".live-status").last
    for name, parts in switches.items():
        switch = figure.get_by_role("button", name=name, exact=True)
        switch.press("Enter")
        expect(switch).to_have_attribute("aria-pressed", "false")
        after = loss(**parts)
        assert numbers(here, "before") == [before]
        assert numbers(here, "after") == [pytest.approx(after, rel=1e-3)]
        expect(said).to_contain_text(f"→ {numbers(here, 'after')[0]:.3f} nats")
        switch.press("Enter")
        expect(said).not_to_contain_text("→")


def test_what_is_written_is_repeated_with_its_seed(figure):
    field, seed = figure.locator("textarea"), figure.get_by_label("seed")
    on, back = (
        figure.get_by_role("button", name=name) for name in ("Write on", "Take back")
    )

    def written(count):
        for _ in range(count):
            figure.get_by_role("button", name="Next character").click()
        return field.input_value()

    first = written(20)
    assert len(first) == 27
    assert first.startswith("in the ")
    back.click()
    expect(field).to_have_value("in the ")
    on.click()
    stop = figure.get_by_role("button", name="Stop")
    figure.wait_for_function("document.querySelector('textarea').value.length > 20")
    stop.click()
    text = field.input_value()
    assert text[:27] == first[: len(text)]
    figure.wait_for_timeout(200)
    expect(field).to_have_value(text)
    back.click()
    seed.fill("2")
    assert written(20) != first
    back.click()
    seed.fill("1")
    assert written(20) == first
    figure.get_by_role("button", name="Reset").click()
    expect(field).to_have_value("in the ")
    expect(back).to_be_disabled()


def test_each_row_is_that_of_its_head(figure, net):
    figure.locator("textarea").fill("moses")
    seen, exact = [], whole(net)
    for block in exact.stack.blocks:
        block.attention.register_forward_hook(lambda m, x, out: seen.append(out[1][0]))
    without(exact)(tokens_of("moses"))
    code = """(canvas) => {
      const copy = new OffscreenCanvas(6, 1);
      const context = copy.getContext("2d", { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      return [...context.getImageData(0, 0, 6, 1).data];
    }"""
    for t in (5, 3):
        figure.locator(".live-letters button").nth(t).click()
        for layer, weights in enumerate(seen):
            for head, A in enumerate(weights):
                name = f"head {head + 1} of layer {layer + 1}"
                line = figure.get_by_role("img", name=name)
                alpha = np.array(line.evaluate(code)).reshape(6, 4)[:, 3]
                np.testing.assert_allclose(alpha, 255 * A[t].sqrt(), atol=1)
                signs = ["end", *"moses"]
                assert f"on “{signs[A[t].argmax()]}”" in line.get_attribute(
                    "aria-label"
                )


def test_heads_can_be_seen_from_each_character_and_the_address_keeps_the_text(figure):
    field = figure.locator("textarea")
    field.fill("moses")
    letters = figure.locator(".live-letters button")
    expect(letters).to_have_count(6)
    expect(letters.last).to_have_attribute("aria-pressed", "true")
    line = figure.get_by_role("img", name="head 1 of layer 1")
    letters.last.press("ArrowLeft")
    expect(letters.nth(4)).to_have_attribute("aria-pressed", "true")
    expect(letters.nth(4)).to_be_focused()
    letters.first.click()
    seen = "head 1 of layer 1: > 99.9 % on “end”, itself"  # the first sees only itself
    expect(line).to_have_attribute("aria-label", seen)
    figure.wait_for_url("**#still=*")
    figure.reload()
    expect(field).to_have_value("moses")
    wide = figure.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wide, "the figure is wider than the page"
