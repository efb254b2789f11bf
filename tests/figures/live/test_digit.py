"""A digit that is drawn, set as MNIST's are, and read as torch reads it, in Chromium."""

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from stored import floats, whole
from torch.nn.functional import cross_entropy

from dlcore import data
from dlcore.convolution.cnn import classifier, feature_maps
from dlcore.figures.live import as_script, stored_weights
from dlcore.optimization.optimizers import Adam


def pictures(X):
    return torch.tensor(X).float().view(-1, 1, 28, 28) / 255


@pytest.fixture(scope="module")
def digits():
    X, y = data.mnist_sample()
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


@pytest.fixture(scope="module")
def net(digits):
    """A small network that has learned a little."""
    X, y = digits
    source = torch.Generator().manual_seed(0)
    net = classifier((1, 28, 28), [4, 12], [32], 10, generator=source)
    adam = Adam(net.parameters(), 5e-3)
    for k in range(160):
        rows = slice(25 * k % 4000, 25 * k % 4000 + 25)
        adam.zero_grad()
        cross_entropy(net(pictures(X[rows])), torch.tensor(y[rows])).backward()
        adam.step()
    return net.eval()


@pytest.fixture(scope="module")
def page(blank):
    for name in ("tensors", "classifier", "pad", "bars"):
        blank.add_script_tag(content=as_script(name))
    return blank


READ = """([net, pixels]) => {
  const read = classifier.classifier(net);
  return pixels.map((row) => {
    const x = Float32Array.from(row, (byte) => byte / 255);
    const { logits, maps } = read(tensors.tensor([1, 28, 28], x));
    return { logits: [...logits.data], first: [...maps[0].data].slice(0, 1152) };
  });
}"""


def test_the_scores_are_those_of_torch(page, net, digits):
    X = digits[0][4000:4050]
    stored = dict(sorted(floats(net).items()))  # as a notebook stores it
    found = page.evaluate(READ, [stored, X.tolist()])
    with torch.no_grad():
        wanted = net.double()(pictures(X).double())
        relu = feature_maps(net, pictures(X).double())[1][1]
    net.float()
    ours = torch.tensor([one["logits"] for one in found], dtype=torch.float64)
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-4)
    maps = torch.tensor([one["first"] for one in found], dtype=torch.float64)
    wanted = relu.flatten(1)[:, :1152]
    torch.testing.assert_close(maps, wanted, rtol=1e-4, atol=1e-5)


def test_whole_numbers_give_the_answers_of_torch(page, net, digits):
    X, y = digits[0][4000:5000], digits[1][4000:5000]
    found = page.evaluate(READ, [stored_weights(net.state_dict()), X.tolist()])
    ours = np.array([one["logits"] for one in found]).argmax(axis=1)
    with torch.no_grad():
        wanted, exact = (n(pictures(X)).argmax(dim=1) for n in (whole(net), net))
    assert ours.tolist() == wanted.tolist()
    assert (ours != exact.numpy()).mean() < 0.01, "whole numbers change the answers"
    assert (ours == y).mean() > 0.9, "the network has learned nothing to compare"


@pytest.mark.parametrize("rule", ["centred", "reduced"])
def test_a_digit_of_mnist_stays_as_it_is(page, digits, rule):
    X = digits[0][:200]
    code = f"(pixels) => pixels.map((x) => [...pad.{rule}(pad.enlarged(x))])"
    np.testing.assert_allclose(page.evaluate(code, X.tolist()), X, atol=1e-9)


def drawn(page, points, radius=4.0, rule="centred"):
    """Draw a line through points of the pad; return the picture of it."""
    code = f"""([points, radius]) => {{
      const ink = new Float64Array(112 * 112);
      points.forEach((p, k) => pad.stroke(ink, points[Math.max(0, k - 1)], p, radius));
      return [...pad.{rule}(ink)];
    }}"""
    return np.array(page.evaluate(code, [points, radius])).reshape(28, 28)


def test_a_drawing_fits_the_box_wherever_it_stands(page):
    path = np.array([[10, 12], [34, 12], [16, 44]])
    first = drawn(page, path.tolist())
    for shift in ([0, 0], [31, 2], [60, 50]):
        moved = drawn(page, (path + shift).tolist())
        np.testing.assert_allclose(moved, first, atol=1e-12)
        rows, columns = (np.flatnonzero(first.any(axis=axis)) for axis in (1, 0))
        assert rows[-1] - rows[0] == 19
        assert columns[-1] - columns[0] < 19
    centre = (first.sum(1) @ np.arange(28), first.sum(0) @ np.arange(28))
    assert np.all(np.abs(np.array(centre) / first.sum() - 14) <= 0.5)


def test_without_centring_a_drawing_stays_where_it_is(page):
    path = np.array([[12, 12], [12, 40]])
    first = drawn(page, path.tolist(), rule="reduced")
    shift = np.array([40, 8])
    moved = drawn(page, (path + shift).tolist(), rule="reduced")
    np.testing.assert_allclose(moved[2:, 10:], first[:-2, :-10], atol=1e-12)
    assert first[:, 6:].max() == 0


def test_a_larger_drawing_is_scaled(page):
    path = np.array([[20, 20], [50, 20], [30, 50]])
    first, larger = drawn(page, path.tolist()), drawn(page, (2 * path).tolist(), 8.0)
    assert np.abs(first - larger).mean() < 0.01


def test_a_pen_is_round_and_soft(page):
    code = """() => {
      const ink = new Float64Array(112 * 112);
      pad.stroke(ink, [50.5, 50.5], [50.5, 50.5], 5);
      return [...ink];
    }"""
    ink = np.array(page.evaluate(code)).reshape(112, 112)
    i, j = np.mgrid[:112, :112]
    wanted = np.clip(5.5 - np.hypot(i - 50, j - 50), 0, 1)
    np.testing.assert_allclose(ink, wanted, atol=1e-12)


def test_no_ink_has_no_centre(page):
    assert page.evaluate("() => pad.centred(new Float64Array(112 * 112))") is None


def test_probabilities_are_never_rounded_to_certainty(page):
    said = page.evaluate("() => [0, 0.004, 0.25, 0.99, 1].map(bars.percent)")
    assert said == ["< 0.1 %", "0.4 %", "25 %", "99.0 %", "> 99.9 %"]


@pytest.fixture(params=["desktop", "phone"])
def figure(show, net, digits, request):
    X, y = digits
    rows = np.concatenate([np.flatnonzero(y == c)[:2] for c in range(10)])
    size = {"desktop": (1300, 900), "phone": (390, 844)}[request.param]
    weights = dict(sorted(stored_weights(net.state_dict()).items()))
    here = {"net": weights, "samples": X[rows], "labels": y[rows]}
    return show("digit", size, request.param == "phone", **here)


def drag(figure, points):
    box = figure.locator(".live-pad").bounding_box()
    side, places = box["width"], []
    for x, y in points:
        places.append((box["x"] + x * side, box["y"] + y * side))
    figure.mouse.move(*places[0])
    figure.mouse.down()
    for place in places[1:]:
        figure.mouse.move(*place, steps=4)
    figure.mouse.up()


def test_a_digit_is_drawn_by_pointer_and_taken_back(figure):
    here = figure.locator(".live")
    drag(figure, [(0.2, 0.15), (0.3, 0.15), (0.28, 0.3), (0.22, 0.5)])
    expect(here).to_have_attribute("data-answer", "7")
    expect(figure.get_by_role("status")).to_contain_text("It reads 7", timeout=5000)
    said = here.get_attribute("data-p")
    p = [float(v) for v in said.split()]
    assert np.argmax(p) == 7
    assert sum(p) == pytest.approx(1, abs=1e-6)
    drag(figure, [(0.15, 0.3), (0.35, 0.3)])
    expect(here).not_to_have_attribute("data-p", said)
    figure.get_by_role("button", name="Undo").click()
    expect(here).to_have_attribute("data-p", said)
    figure.get_by_role("button", name="Clear").click()
    expect(here).to_have_attribute("data-answer", "")


def test_a_digit_is_drawn_by_keys(figure):
    here, pad = figure.locator(".live"), figure.locator(".live-pad")
    pad.focus()
    for _ in range(8):
        pad.press("ArrowUp")
    expect(figure.locator(".live-cursor")).to_be_visible()
    expect(figure.get_by_role("status")).to_have_text("Row 7, column 15 of 28.")
    for _ in range(16):
        pad.press("Shift+ArrowDown")
    expect(here).to_have_attribute("data-answer", "1")
    pad.press("Backspace")
    expect(here).to_have_attribute("data-answer", "")
    pad.press("Space")
    expect(here).not_to_have_attribute("data-answer", "")


def test_stored_images_are_read_as_torch_reads_them(figure, net, digits):
    X, y = digits
    here = figure.locator(".live")
    for digit in range(10):
        for row in np.flatnonzero(y == digit)[:2]:
            figure.get_by_role("button", name=f"a test image of {digit}").press("Enter")
            figure.evaluate("() => new Promise(requestAnimationFrame)")  # it is drawn
            with torch.no_grad():
                logits = whole(net)(pictures(X[row : row + 1]))[0]
            expect(here).to_have_attribute("data-answer", str(int(logits.argmax())))
            p = [float(v) for v in here.get_attribute("data-p").split()]
            np.testing.assert_allclose(p, logits.softmax(0), rtol=1e-3, atol=1e-5)
            said = figure.locator(".live-status")
            expect(said).to_contain_text(f"The label is {digit}.")


def test_a_drawing_in_the_corner_needs_the_centre_and_is_kept(figure):
    here = figure.locator(".live")
    drag(figure, [(0.06, 0.06), (0.06, 0.3)])
    expect(here).to_have_attribute("data-answer", "1")
    one = here.get_attribute("data-p")
    figure.get_by_role("button", name="not at all").click()
    expect(here).not_to_have_attribute("data-p", one)
    other = here.get_attribute("data-p")
    figure.wait_for_url("**#still=*")
    figure.reload()
    expect(here).to_have_attribute("data-p", other)
    wide = figure.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wide, "the figure is wider than the page"
