"""The rendered book in Chromium: offline, quiet, readable, and alive.

Every page is opened once from the folder, where browsers are strict, first on a desktop,
then on a phone, and shown in both themes; one page of each kind is opened from a server
too. The tests of a visit share the page and follow each other as they stand here, so the
last of them see what it asked for and complained about while the others used it.
"""

import io
import json
import re
from collections import defaultdict
from functools import cache, partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import nbformat
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from book_api import modules, own
from browser import CHROMIUM, launched
from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import expect

from dlcore.connectionism import perceptron

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="No Chromium on this machine: the rendered book was not tested. "
    "On Debian: apt-get install chromium",
)
if not SITE.is_dir():
    pytest.fail("There is no book in _build/html: run make book", pytrace=False)

FILES = [file.relative_to(SITE) for file in sorted(SITE.rglob("*.html"))]
PAGES = [file.as_posix() for file in FILES if file.parts[0] != "_static"]
SOURCES = {page: (ROOT / page).with_suffix(".ipynb") for page in PAGES}
NOTEBOOKS = [page for page in PAGES if SOURCES[page].is_file()]
LEDGER, SEARCH = "book/appendix/ledger.html", "search.html?q=perceptron"
MOVABLE = "book/connectionism/perceptron.html"
THEMES = ["light", "dark"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
ARTICLE = ".bd-article, .bd-search-container"
PICTURE = ".explore-window > :is(img, canvas)"
MAX_LIVE = 250_000  # bytes of a live figure's page
SHEETS = 4  # decoded at a time; each takes up to 80 MB of a phone

# Typeset the mathematics and, at once, open what is folded: it obeys the same laws.
SETTLE = """async () => {
  await window.MathJax?.startup?.promise;
  const still = ["transition: none", "animation: none", "scroll-behavior: auto"];
  const style = `<style>* { ${still.map((rule) => `${rule} !important`).join(";")} }</style>`;
  document.head.insertAdjacentHTML("beforeend", style);
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  document.querySelectorAll(".toggle-button-hidden").forEach((b) => b.click());
}"""

# Mathematics has the colour of the text around it, and is most of a page: with it, a
# change of colours and a look at them take seconds.
WITHOUT_MATHEMATICS = """() =>
  document.querySelectorAll("mjx-container").forEach((e) => e.remove())"""

# Code has no pictures, controls or links, and takes as long to look at.
WITHOUT_CODE = """() =>
  document.querySelectorAll("pre:not(:has(a, img))").forEach((e) => e.replaceChildren())"""

# Axe takes long. Contrast depends on colours and type alone, so mark one element with
# text for each look that is not known yet, and return these looks.
MARK_LOOKS = """([selector, known]) => {
  const right = (e) => e.getBoundingClientRect().right;
  const inView = (e) => right(e) <= right(e.closest("pre") ?? document.body);
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const grounds = new Map([[null, ""]]);
  const ground = (e) => {
    if (!grounds.has(e)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
      const own = [backgroundColor, backgroundImage, opacity];
      grounds.set(e, ground(e.parentElement) + own);
    }
    return grounds.get(e);
  };
  document.querySelectorAll("[data-look]").forEach((e) => delete e.dataset.look);
  const looks = new Set(known);
  const prose = ":not(script)";
  for (const e of document.querySelector(selector).querySelectorAll(prose)) {
    if (!hasText(e) || !e.checkVisibility() || !inView(e)) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(e);
    const look = [ground(e), color, fontSize, fontWeight].join();
    if (!looks.has(look)) e.dataset.look = "new";
    looks.add(look);
  }
  return [...looks].slice(known.length);
}"""

# Axe walks through all of a page. Show it what is marked, in its boxes and colours, and
# nothing else, and put the page back afterwards.
ONLY_MARKED = """() => {
  const whole = document.body, boxes = new Set();
  for (let e of whole.querySelectorAll("[data-look]"))
    for (; e !== whole; e = e.parentElement) boxes.add(e);
  const copy = (e) => {
    const { color, backgroundColor } = getComputedStyle(e), twin = e.cloneNode();
    Object.assign(twin.style, { color, backgroundColor });
    const shown = (n) => boxes.has(n) || (n.nodeType === 3 && e.dataset.look);
    const parts = [...e.childNodes].filter(shown);
    twin.append(...parts.map((n) => (boxes.has(n) ? copy(n) : n.cloneNode())));
    return twin;
  };
  const part = copy(whole);
  whole.replaceWith(part);
  window.putBack = () => part.replaceWith(whole);
}"""

RAW_LATEX = r"""() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const unset = all(".math").filter((e) => !e.querySelector("mjx-container"));
  const wrong = all("mjx-merror, mjx-assistive-mml mtext[mathcolor=red]");
  const found = [...unset, ...wrong].map((e) => e.textContent);
  const latex = /\\[([]|\$\$|\\[a-zA-Z]+|\$[^$]*[\\^_=][^$]*\$/;
  const code = "code, pre, script, style, mjx-container, .math";
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement: e } = texts.currentNode;
    if (latex.test(data) && !e.closest(code) && e.checkVisibility()) found.push(data);
  }
  return found;
}"""

# Sphinx falls back to the name of the file, which describes nothing.
NOT_DESCRIBED = r"""() => {
  const images = ".bd-article :is(img, svg[role=img]:not([aria-hidden=true]))";
  const alt = (e) => e.alt ?? e.ariaLabel ?? e.querySelector("title")?.textContent ?? "";
  const bad = (e) => !alt(e).trim() || /\.(png|svg|jpe?g|gif|webp)$/.test(alt(e));
  const cell = (e) => e.closest(".cell")?.querySelector("pre")?.innerText.slice(0, 80);
  const name = (e) => `${e.src?.slice(-40) ?? "svg"} of the cell "${cell(e) ?? ""}"`;
  return [...document.querySelectorAll(images)].filter(bad).map(name);
}"""

# Name the element that reaches farthest right, and is in no box that scrolls or floats.
TOO_WIDE = """() => {
  const root = document.documentElement, right = (e) => e.getBoundingClientRect().right;
  if (root.scrollWidth <= root.clientWidth) return [];
  const floats = (e) => getComputedStyle(e).position === "fixed";
  const boxed = (e) => e !== document.body &&
    (floats(e) || getComputedStyle(e).overflowX !== "visible" || boxed(e.parentElement));
  const all = [...document.body.querySelectorAll("*")];
  const loose = all.filter((e) => !floats(e) && !boxed(e.parentElement));
  const widest = loose.reduce((a, b) => (right(b) > right(a) ? b : a));
  const tag = widest.cloneNode().outerHTML;
  return [`${tag} ends at ${right(widest)} px: ${widest.innerText}`];
}"""

# Reach for a control, and wait until the sheet of its figure is decoded. From then on
# write down what the figure shows, and what the control says to the eye and to the ear.
REACH = """async (control) => {
  const figure = control.closest(".explore"), picture = () => figure.querySelector(
    ".explore-window > :is(img, canvas)");
  figure.scrollIntoView({ block: "center", behavior: "instant" });
  control.focus();
  const steps = (control.steps = {}), end = performance.now() + 30_000;
  figure.addEventListener("input", () => queueMicrotask(() => {
    const texts = control.selectedOptions
      ? [control.selectedOptions[0].text]
      : [control.nextElementSibling.textContent, control.getAttribute("aria-valuetext")];
    const alt = picture().alt ?? picture().getAttribute("aria-label");
    steps[control.value] = { place: figure.dataset.place, alt, texts };
  }));
  const pause = () => new Promise((go) => setTimeout(go, 20));
  while (figure.dataset.ready === undefined && performance.now() < end) await pause();
  const label = control.labels[0]?.firstChild.textContent.trim();
  return { label, ready: figure.dataset.ready !== undefined };
}"""

CHOOSE_EACH = """async (menu) => {
  for (const { index } of [...menu.options].reverse()) {
    menu.selectedIndex = index;
    for (const kind of ["input", "change"])
      menu.dispatchEvent(new Event(kind, { bubbles: true }));
    await new Promise(setTimeout);
  }
}"""

# How many sheets are decoded, once the browser has looked which figures are near.
DECODED = """async () => {
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  return document.querySelectorAll(".explore[data-ready]").length;
}"""

# Let time pass for figures that play when the test says so: pass() is one step of it.
HOLD_TIME = """() => {
  let step = null;
  window.setInterval = (next, ms) => { step = ms > 0 ? next : null; return 1; };
  window.clearInterval = () => { step = null; };
  window.pass = () => step?.();
}"""


class Reader:
    """A tab of the browser, and what its page did since it was opened."""

    def __init__(self, browser, place, base):
        self.place, self.base = place, base
        self.requests, self.complaints, self.looks = [], [], []
        context = browser.new_context()
        foreign = re.compile(f"^(?!{re.escape(base)}|data:|blob:|about:)")
        context.route(foreign, lambda route: route.abort())
        context.add_init_script("try { localStorage.clear() } catch {}")
        self.page, complain = context.new_page(), self.complaints.append
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("websocket", lambda w: self.requests.append(w.url))
        self.page.on("pageerror", lambda e: complain(e.stack or e.message))
        self.page.on("console", self.on_console)

    def on_console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location['url']})")

    def open(self, name):
        self.page.goto("about:blank")
        self.name, self.requests[:], self.complaints[:] = name, [], []
        self.decoded = []  # how many sheets, after each control that was moved
        self.page.set_viewport_size(DESKTOP)
        self.page.emulate_media(color_scheme="light")
        self.page.goto(self.base + name)
        # Wait for the article, because index.html only leads on to the book.
        self.page.wait_for_selector(ARTICLE, state="attached")
        self.page.wait_for_load_state()
        self.page.evaluate(SETTLE)
        return self

    def choose(self, theme):
        """Ask for a theme, as the system of a reader does."""
        self.page.emulate_media(color_scheme=theme)
        page = self.page.locator("html")
        said = f"{self}: the theme does not become {theme}"
        expect(page, said).to_have_attribute("data-theme", theme, timeout=60_000)

    def __str__(self):
        return f"{self.name} (from the {self.place})"


@pytest.fixture(scope="session")
def server():
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    quiet = partial(Quiet, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as server:
        server.handle_error = lambda *args: None  # a tab was closed early
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def readers(browser, server):
    bases = {"server": server, "folder": f"{SITE.as_uri()}/"}
    return {place: Reader(browser, place, base) for place, base in bases.items()}


@pytest.fixture(scope="module")
def visit(request, readers):
    """Open a page; pytest runs all tests of this visit before the next."""
    place, name = request.param
    return readers[place].open(name)


def visiting(names, served=()):
    visits = [("folder", name) for name in names]
    visits += [("server", name) for name in served]
    return pytest.mark.parametrize("visit", visits, indirect=True, ids="-".join)


everywhere = visiting([*PAGES, SEARCH], ["index.html", SEARCH, LEDGER, NOTEBOOKS[0]])
notebooks = visiting(NOTEBOOKS)
live = visiting([page for page in PAGES if "data-live=" in (SITE / page).read_text()])
themes = pytest.mark.parametrize("theme", THEMES)


def forbid(found, where, what, remedy):
    """Fail with a list of what was found, unless nothing was."""
    lines = [f"  {line.strip()[:400]}" for line in dict.fromkeys(found)]
    if len(lines) > 10:
        lines[10:] = [f"  ... and {len(lines) - 10} more"]
    if lines:
        message = "\n".join([f"{where}: {what}:", *lines, remedy])
        pytest.fail(message, pytrace=False)


@visiting([SEARCH], [SEARCH])
def test_search_finds_the_perceptron(visit):
    link = visit.page.locator("#search-results a[href*='perceptron.html']").first
    expect(link, f"{visit}: the perceptron is not found").to_be_visible()
    url = re.split("[?#]", link.evaluate("a => a.href"))[0]
    assert url.removeprefix(visit.base) in PAGES, f"{visit}: {url} does not exist"


@visiting([LEDGER])
def test_the_ledger_pairs_statements_with_evidence(visit):
    rows = visit.page.locator(".ledger tbody tr").all()
    assert rows, f"{visit}: no statement is listed. See book/_ext/book_ledger.py."
    found = []
    for row in rows:
        statement, *_, evidence = row.locator("td").all()
        name, to_label = statement.inner_text(), "a[href*='#']"
        if not statement.locator(to_label).count():
            found.append(f"{name} is no link")
        if "Definition" not in name and not evidence.locator(to_label).count():
            found.append(f"{name} has no evidence")
    remedy = (
        "Let a code cell follow the statement that starts with '# evidence: <label>' and "
        "asserts what it states."
    )
    forbid(found, visit, "statements without evidence", remedy)


@everywhere
def test_mathematics_is_typeset(visit):
    remedy = (
        "Mend the LaTeX: an unknown command, a $ without its partner or beside a space, "
        "mathematics in a page's title (pages without formulas load no MathJax)."
    )
    forbid(visit.page.evaluate(RAW_LATEX), visit, "LaTeX is not typeset", remedy)


@everywhere
def test_every_picture_is_described(visit):
    remedy = (
        "Put '# alt: ...' in the first lines of the cell, or a docstring in the draw "
        "function of explore."
    )
    found = visit.page.evaluate(NOT_DESCRIBED)
    forbid(found, visit, "pictures without alternative text", remedy)


@everywhere
def test_every_page_fits_a_phone(visit):
    visit.page.set_viewport_size(PHONE)
    remedy = "Shorten it, or let it scroll in a box: overflow-x: auto in book.css."
    found = visit.page.evaluate(TOO_WIDE)
    forbid(found, visit, f"wider than {PHONE['width']} px", remedy)


def picture(locator):
    """Return what a reader sees of an element, in shades of grey."""
    return Image.open(io.BytesIO(locator.screenshot())).convert("L")


def described(locator):
    """Return what a reader hears of a picture."""
    return locator.evaluate("e => e.alt ?? e.getAttribute('aria-label')")


@notebooks
def test_stills_show_what_their_sheets_show(visit):
    figure = visit.page.locator(".explore").first
    if not figure.count():
        return
    shown = figure.locator(PICTURE)
    still, alt = picture(shown), described(shown)
    control = figure.locator("input, select").first
    control.focus()
    control.dispatch_event("input")
    where = f"{visit}: the figure '{alt}'"
    expect(
        figure, f"{where} does not show its sheet when a control is moved"
    ).to_have_attribute("data-place", re.compile(r"\d+:\d+"), timeout=30_000)
    frame = picture(shown)
    remedy = f"Run: make notebooks NB={SOURCES[visit.name].relative_to(ROOT)}"
    assert described(shown) == alt, f"{where} is '{described(shown)}' then"
    assert frame.size == still.size, (
        f"{where} has {still.size} px as a still, {frame.size} px when it is moved"
    )
    apart = ImageChops.difference(blurred(still), blurred(frame)).getextrema()
    assert apart[1] < 24, (
        f"{where} has a still that is not its frame: {apart[1]} of 255 apart where they "
        f"differ most. {remedy}"
    )


def blurred(picture):
    """Return a picture in which edges that were scaled in other ways are the same."""
    return picture.filter(ImageFilter.GaussianBlur(4))


def faults(page, control):
    """Move a control through its values; yield what is wrong with it."""
    reached = control.evaluate(REACH)
    label, size = reached["label"], int(control.get_attribute("data-size"))
    if not label:
        yield "a control has no label"
    if not reached["ready"]:
        yield f"'{label}' does not bring the sheet of its figure"
        return
    if control.get_attribute("type") == "range":
        for key in ["End", "Home", *["ArrowRight"] * (size - 1)]:
            page.keyboard.press(key)
    else:
        control.evaluate(CHOOSE_EACH)
    steps = control.evaluate("c => c.steps").values()
    if len(steps) < size:
        yield f"'{label}' reaches {len(steps)} of its {size} values"
    if len({step["place"] for step in steps}) < 2:
        yield f"'{label}' never changes the picture; start where it does"
    for texts in zip(*(step["texts"] for step in steps), strict=True):
        if len(set(texts)) < len(steps):
            yield f"'{label}' says {texts} for its {len(steps)} values"
    for step in steps:
        if any(f"{label} = {text}" not in step["alt"] for text in step["texts"]):
            yield f"'{label}' says {step['texts']}, but its picture '{step['alt']}'"


@notebooks
def test_every_control_moves_its_figure(visit):
    cells = nbformat.read(SOURCES[visit.name], as_version=4).cells
    calls = sum(bool(re.search(r"^explore\(", cell.source, re.M)) for cell in cells)
    figures = visit.page.locator(".explore")
    assert figures.count() >= calls, (
        f"{visit}: {calls} calls of explore, but {figures.count()} figures with "
        "controls. End each cell with the call, and run make book."
    )
    found = []
    for control in figures.locator("input, select").element_handles():
        found += faults(visit.page, control)
        visit.decoded.append(visit.page.evaluate(DECODED))
    remedy = "See dlcore/figures/explore.py and book/_static/explore.js."
    forbid(found, visit, "controls do not work", remedy)


@notebooks
def test_few_sheets_are_decoded_at_a_time(visit):
    most = max(visit.decoded, default=0)
    assert most <= SHEETS, (
        f"{visit}: {most} sheets were decoded at a time while all figures were moved. "
        "Let go of those out of sight: book/_static/explore.js."
    )


@notebooks
def test_play_plays_and_pauses(visit):
    visit.page.evaluate(HOLD_TIME)
    for figure in visit.page.locator(".explore:has(button)").all():
        button, image, value = map(figure.locator, ["button", PICTURE, "output"])
        figure.locator("input").press("Home")
        button.click()
        expect(button, f"{visit}: 'Play' does not play").to_have_text("Pause")
        button.click()
        alt, paused = described(image), value.inner_text()
        visit.page.evaluate("pass()")
        assert described(image) == alt, f"{visit}: 'Pause' does not pause"
        button.click()
        visit.page.evaluate("pass()")
        expect(value, f"{visit}: 'Play' does not move on").not_to_have_text(paused)
        assert described(image) != alt, f"{visit}: 'Play' draws nothing"
        figure.locator("input").press("Home")
        expect(button, f"{visit}: a key does not stop it").to_have_text("Play")


@visiting([MOVABLE])
def test_a_picture_can_be_dragged_and_the_address_keeps_what_it_shows(visit):
    figure = visit.page.locator(".explore[data-name=tug_of_war]")
    window, slider = figure.locator(".explore-window"), figure.locator("input").first
    slider.press("Home")
    expect(figure.locator("canvas")).to_be_visible(timeout=30_000)
    box = window.bounding_box()
    x, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
    visit.page.mouse.move(x, y)
    visit.page.mouse.down()
    visit.page.mouse.move(x + box["width"] / 2, y, steps=5)
    visit.page.mouse.up()
    dragged = slider.input_value()
    assert int(dragged) > 2, f"{visit}: the slider is at {dragged} after a drag"
    margin = f'"{slider.get_attribute("aria-valuetext")}"'
    visit.page.wait_for_url(
        lambda url: "#tug_of_war=" in url and margin in unquote(url)
    )
    linked = visit.page.url
    slider.press("Home")
    visit.page.wait_for_url(lambda url: url != linked)
    visit.page.evaluate("(url) => { location.href = url; }", linked)
    expect(slider).to_have_value(dragged)


@live
def test_live_figures_start_when_a_reader_comes_near(visit):
    for figure in visit.page.locator("[data-live]").all():
        figure.scroll_into_view_if_needed()
        name = figure.get_attribute("data-live")
        said = f"{visit}: {name} does not start. See book/_static/live.js"
        expect(figure, said).to_have_attribute("data-ready", "", timeout=10_000)
        assert not figure.locator(".live-here > img").count(), said
        weight = len(figure.inner_html())
        assert weight < MAX_LIVE, f"{visit}: {name} weighs {weight:,} bytes"


def stored(figure):
    """Return the points and labels that a live figure starts with."""
    text = figure.locator("script[type='application/json']").text_content()
    data = json.loads(text)["data"]
    return np.array(data["X"]), np.array(data["y"])


@visiting([MOVABLE, "book/index.html"])
def test_the_perceptron_of_the_page_learns_as_that_of_dlcore(visit):
    figure = visit.page.locator("[data-live=learning]")
    here, step = figure.locator(".live"), figure.get_by_role("button", name="One step")
    figure.get_by_role("button", name="From zero").click()
    history = perceptron.fit(*stored(figure))
    for t in range(1, history.updates + 1):
        step.press("Enter")
        expect(here).to_have_attribute("data-updates", str(t))
        answers = perceptron.predict(history.w[t], history.b[t], stored(figure)[0])
        wrong = int((answers != stored(figure)[1]).sum())
        expect(here).to_have_attribute("data-wrong", str(wrong))
    step.press("Enter")
    expect(here).to_have_attribute("data-updates", str(history.updates))


@visiting([MOVABLE])
def test_an_edge_can_be_typed_dragged_and_linked_to(visit):
    figure = visit.page.locator("[data-live=boundary]")
    here, (angle, bias) = figure.locator(".live"), figure.locator("[type=number]").all()
    X, y = stored(figure)
    angle.fill("57.2")
    bias.fill("-0.18")
    w = np.array([np.cos(np.radians(57.2)), np.sin(np.radians(57.2))])
    margin = float(here.get_attribute("data-margin"))
    assert margin == pytest.approx(perceptron.margin(w, -0.18, X, y), abs=1e-9)
    best = perceptron.margin(*perceptron.max_margin(X, y), X, y)
    assert margin > best - 0.005, (
        f"{visit}: the best margin, {best:.3f}, is not reached"
    )
    visit.page.wait_for_url(re.compile("#boundary="))
    linked = visit.page.url
    figure.locator(".live-handle").press("ArrowLeft")
    expect(angle).to_have_value("58.2")
    box = figure.locator(".live-handle").bounding_box()
    visit.page.mouse.move(box["x"] + 5, box["y"] + 5)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 60, box["y"] + 40, steps=4)
    visit.page.mouse.up()
    assert float(angle.input_value()) < 57.2, f"{visit}: the edge does not turn"
    visit.page.wait_for_url(lambda url: url != linked)
    visit.page.evaluate("(url) => { location.href = url; }", linked)
    expect(figure.locator("[type=number]").first).to_have_value("57.2")


@visiting(["book/index.html"])
def test_points_can_be_clicked_turned_moved_and_taken_away(visit):
    figure = visit.page.locator("[data-live=learning]")
    points = figure.locator(".live-point")
    count, plane = points.count(), figure.locator(".live-ground")
    plane.click(position={"x": 30, "y": 30})
    expect(points).to_have_count(count + 1)
    new = points.last
    expect(new).to_have_attribute("aria-label", re.compile("blue disc"))
    where = new.get_attribute("aria-label")
    new.press("ArrowRight")
    expect(new).not_to_have_attribute("aria-label", where)
    new.press("Space")
    expect(points.last).to_have_attribute("aria-label", re.compile("orange square"))
    points.last.click()
    expect(points.last).to_have_attribute("aria-label", re.compile("blue disc"))
    points.last.press("Delete")
    expect(points).to_have_count(count)
    figure.get_by_role("button", name="Make it impossible").click()
    expect(points).to_have_count(4)
    expect(figure.locator(".live-cross")).to_be_visible()
    figure.get_by_role("button", name="eight hidden units").click()
    figure.get_by_role("button", name="Learn").click()
    expect(figure.locator(".live")).to_have_attribute("data-wrong", "0", timeout=30_000)
    figure.get_by_role("button", name="one unit").click()
    figure.get_by_role("button", name="Our points").click()
    expect(points).to_have_count(count)


def axe(visit, selector, rules):
    """Return what axe finds wrong, or cannot tell, below a selector."""
    options = {"runOnly": rules, "resultTypes": ["violations", "incomplete"]}
    report = Axe().run(visit.page, selector, options).response
    return [
        f"{check['id']}: {node['html'][:120]}\n    {node['failureSummary']}"
        for check in report["violations"] + report["incomplete"]
        for node in check["nodes"]
        if check in report["violations"] or "obscured" in node["failureSummary"]
    ]


def hard_to_see(visit):
    """Return what axe says of the colours of looks that are not known yet."""
    new = visit.page.evaluate(MARK_LOOKS, [ARTICLE, visit.looks])
    visit.looks += new
    if not new:
        return []
    visit.page.evaluate(ONLY_MARKED)
    found = axe(visit, "[data-look]", ["color-contrast"])
    visit.page.evaluate("putBack()")
    return found


def on_paper(visit):
    """Return a figure of each kind: its text, its paper, its darkest and lightest ink."""
    found = []
    for kind in (PICTURE, "img:not(.explore img, .photo)"):
        shown = visit.page.locator(f".cell_output {kind} >> visible=true").first
        if shown.count():
            seen = picture(shown)
            found.append((described(shown), seen.getpixel((2, 2)), seen.getextrema()))
    return found


@pytest.fixture(scope="module")
def seen(visit):
    """Show each theme once, and return what there is to see in it."""
    visit.page.evaluate(WITHOUT_MATHEMATICS)
    visit.page.set_viewport_size(DESKTOP)
    found = {}
    for theme in THEMES:
        visit.choose(theme)
        found[theme] = on_paper(visit), hard_to_see(visit)
    return found


@everywhere
@themes
def test_both_themes_are_readable(visit, seen, theme):
    _, found = seen[theme]
    remedy = "Mend the colours in book/_static/book.css."
    forbid(found, f"{visit}, {theme}", "hard to see", remedy)


@notebooks
@themes
def test_figures_follow_the_theme(visit, seen, theme):
    figures, _ = seen[theme]
    for alt, paper, (darkest, lightest) in figures:
        light = paper > 200 and darkest < 100
        dark = paper < 80 and lightest > 150
        assert light if theme == "light" else dark, (
            f"{visit}, {theme}: {alt!r} has paper of brightness {paper} and ink from "
            f"{darkest} to {lightest}, of 255. Draw in plt.style.use('dlcore.book'), "
            "and see 'Dark page' in book/_static/book.css."
        )


@everywhere
def test_everything_has_a_name(visit):
    visit.page.evaluate(WITHOUT_CODE)
    rules = ["image-alt", "role-img-alt", "label", "select-name"]
    rules += ["button-name", "link-name"]
    remedy = "Name it for readers who do not see it."
    forbid(axe(visit, ARTICLE, rules), visit, "hard to hear", remedy)


@everywhere
def test_no_request_leaves_the_machine(visit):
    # Connections made ahead of time and icons are no requests to Playwright.
    hints = "link[rel~=preconnect], link[rel~=dns-prefetch], link[rel~=icon]"
    hinted = visit.page.locator(hints).evaluate_all("all => all.map((e) => e.href)")
    own = (visit.base, "data:", "blob:")
    found = [url for url in visit.requests + hinted if not url.startswith(own)]
    remedy = "Put it in book/_static, or switch off what asks for it: _config.yml."
    forbid(found, visit, "asks for what is not in the book", remedy)


@everywhere
def test_no_page_complains(visit):
    remedy = "Mend the path of what is not found; else press F12 on the page."
    forbid(visit.complaints, visit, "errors and warnings in the console", remedy)


def test_picture_and_controls_agree_when_a_reader_comes_back(browser):
    """A browser restores what was chosen, but not what was drawn."""
    reader = Reader(browser, "folder", f"{SITE.as_uri()}/").open(MOVABLE)
    figure = reader.page.locator(".explore:has(input)").first
    slider = figure.locator("input").first
    slider.press("End")
    chosen, text = slider.input_value(), slider.get_attribute("aria-valuetext")
    reader.page.goto("about:blank")
    reader.page.go_back()
    assert slider.input_value() == chosen, f"{reader}: Chromium has forgotten"
    said = f"{reader}: the slider is at {text} again, but its picture is not"
    expect(figure.locator(PICTURE), f"{said}: explore.js").to_have_attribute(
        "aria-label", re.compile(rf"= {re.escape(text)}\b"), timeout=30_000
    )


class Anchors(HTMLParser):
    """The links and images of a page, and the ids that links can point to."""

    def __init__(self):
        super().__init__()
        self.found = defaultdict(set)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            self.found["id" if key == "id" else f"{tag} {key}"].add(value or "")


@cache
def anchors(path):
    parser = Anchors()
    parser.feed(path.read_text())
    return parser.found


def targets(page, kind):
    """Return the links of a kind that stay in the book, with the files they point to."""
    links = anchors(SITE / page)[kind]
    links = [link for link in links if not re.match(r"\w+:|//", link)]
    paths = [unquote(urlsplit(link).path) for link in links]
    files = [(SITE / page).parent / path if path else SITE / page for path in paths]
    return dict(zip(links, files, strict=True))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    def leads(link, file):
        fragment = unquote(urlsplit(link).fragment)
        return file.is_file() and (not fragment or fragment in anchors(file)["id"])

    links = targets(page, "a href").items()
    found = [link for link, file in links if not leads(link, file)]
    forbid(found, page, "links that lead nowhere", "Mend the label or the path.")


@pytest.mark.parametrize(
    "folder", [f.stem for f in sorted((ROOT / "book/appendix/api").glob("[!i]*.rst"))]
)
def test_every_public_name_is_in_the_reference(folder):
    found = anchors(SITE / "book" / "appendix" / "api" / f"{folder}.html")["id"]
    named = {
        f"{module.__name__}.{name}"
        for module in modules(f"dlcore.{folder}")
        for name in own(module)
    }
    forbid(sorted(named - {*found}), folder, "names that are missing", "See book_api.")
    assert named


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_every_notebook_can_be_downloaded(page):
    name = SOURCES[page].name
    files = [file for file in targets(page, "a href").values() if file.name == name]
    assert files, f"{page}: no link to {name}. Is use_download_button switched off?"
    for file in files:
        notebook = json.loads(file.read_text())
        assert notebook.get("nbformat") == 4, f"{page}: {file} is no notebook"


def megabytes(files):
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


@pytest.mark.parametrize("page", PAGES)
def test_pages_stay_small(page):
    file = SITE / page
    sheets = (file.parent / "frames" / file.stem).glob("*")
    size = megabytes({file, *targets(page, "img src").values(), *sheets})
    assert size < 4, (
        f"{page}: {size:.1f} MB with its images. Offer fewer values in explore, draw "
        "smaller figures, or split the page."
    )


def test_the_book_stays_small():
    (wheel,) = SITE.glob("_static/*.whl")  # it carries the recorded runs
    size = megabytes({*SITE.rglob("*")} - {wheel})
    assert size < 50, (
        f"_build/html has {size:.0f} MB, more than 50. See what is large in it."
    )
    assert megabytes([wheel]) < 10, "dlcore with its records is larger than 10 MB."


def test_no_answer_of_an_assignment_is_published():
    from classroom.verify import secrets  # seconds, which only this test needs

    book = ROOT / "book"
    pages = [f for f in book.rglob("*.ipynb") if "assignments" not in f.parts]
    shown = "\n".join(
        "".join(cell["source"])
        for page in pages
        for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]
    )
    answers = {
        line: {*re.findall(r"\w+", line)[1:-1]}  # words, wherever it stands
        for file in (book / "assignments").glob("*.ipynb")
        for line in secrets(nbformat.read(file, 4))
        if line not in shown
    }
    assert len(answers) > 100
    kinds = {".html", ".js", ".txt", ".ipynb", ".py", ".json"}
    for file in SITE.rglob("*"):
        if file.suffix in kinds:
            text = file.read_text(encoding="utf-8", errors="replace")
            text = unescape(re.sub(r"[\w+/=]{500,}", "", text))  # no pictures
            words = {*re.findall(r"\w+", text)}
            found = [a for a, own in answers.items() if own <= words and a in text]
            where = file.relative_to(SITE)
            assert not found, f"{where} publishes {found}. Take it out of _toc.yml."
