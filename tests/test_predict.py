"""Predict, then see: what the directive reads and refuses, and what a reader meets."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from book_predict import (
    ANSWER,
    as_number,
    match,
    names_answer,
    plain,
    printed,
    split,
    take_answers,
)
from browser import CHROMIUM, launched
from bs4 import BeautifulSoup
from docutils import nodes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[1]


def stdout(text):
    return new_output("stream", name="stdout", text=text)


# The cell that answers.


@pytest.mark.parametrize(
    ("source", "label", "rest"),
    [
        ("# answer: a-b\nprint(1)", "a-b", "print(1)"),
        ("# evidence: e\n# answer: a\nx", "a", "# evidence: e\nx"),
        ("# check: long\n#   text\n# answer: a\nx", "a", "# check: long\n#   text\nx"),
        ("# answer: a", "a", ""),
        ("x = 1\n# answer: a", None, "x = 1\n# answer: a"),
        ("# answer:\nx", None, "# answer:\nx"),
        ("# answers: a\nx", None, "# answers: a\nx"),
    ],
)
def test_first_comments_name_the_question(source, label, rest):
    assert names_answer(source) == label
    assert ANSWER.sub(r"\1", source) == rest


def test_last_line_that_is_printed_is_the_answer():
    out = [stdout("one\n"), new_output("stream", name="stderr", text="no\n")]
    out += [stdout("two \n\n"), new_output("display_data", {"text/plain": "3"})]
    assert printed(new_code_cell("", outputs=out)) == "two"
    assert printed(new_code_cell("")) == ""


@pytest.mark.parametrize(
    ("source", "tags", "folded"),
    [
        ("x", [], ["hide-cell"]),
        ("x", ["hide-input", "mine"], ["mine", "hide-cell"]),
        ("x", ["hide-output"], ["hide-output"]),
        ("x", ["hide-cell"], ["hide-cell"]),
    ],
)
def test_no_answer_is_in_view_below_its_question(source, tags, folded):
    cell = new_code_cell(
        f"# answer: a\n{source}", metadata={"tags": tags}, outputs=[stdout("5\n")]
    )
    text = new_markdown_cell("# answer: a")
    assert take_answers(new_notebook(cells=[text, cell])) == {"a": ["5"]}
    assert cell.metadata["tags"] == [*folded, "answer-a"]
    assert cell.source == source


@pytest.mark.parametrize("first", ["# evidence: e", "# check: some"])
def test_output_of_evidence_is_folded_as_well(first):
    cell = new_code_cell(f"{first}\n# answer: a\nx")
    take_answers(new_notebook(cells=[cell]))
    assert cell.metadata["tags"] == ["hide-output", "answer-a"]


# Choices and numbers.


def item(*inline):
    return nodes.list_item("", nodes.paragraph("", "", *inline))


def texts(found):
    choice, word = found
    return "".join(n.astext() for n in choice), "|".join(n.astext() for n in word)


def test_first_colon_outside_of_formulas_and_code_separates():
    f, code = nodes.math("", "f: A"), nodes.literal("", "a: b")
    t = nodes.Text
    assert texts(split(item(t("15: so: it is")))) == ("15", "so: it is")
    assert texts(split(item(t("at 12:30: no")))) == ("at 12:30", "no")
    assert texts(split(item(f, t(" or "), code, t(": no")))) == ("f: A or a: b", "no")
    assert texts(split(item(t("yes: "), f))) == ("yes", "f: A")
    assert texts(split(item(t("yes:"), t("\n"), t("so")))) == ("yes", "so")
    more = item(t("yes: so"))
    more += nodes.paragraph("", "And more.")
    assert texts(split(more)) == ("yes", "so|And more.")


@pytest.mark.parametrize("text", ["15", "15:so", "15: ", ": so", ""])
def test_choice_without_a_word_is_refused(text):
    with pytest.raises(ValueError, match="must read '- choice: a word on it'; got"):
        split(item(nodes.Text(text)))


def test_one_choice_says_the_answer():
    assert match("131", ["15", "131"]) == 1
    assert match("-2", ["2", "−2"]) == 1
    assert match("it's", ["it’s", "its"]) == 0
    assert match("$R^2$ is `x`", ["R^2  is x", "R"]) == 0
    assert plain(" a\n *b* ") == "a b"
    with pytest.raises(
        ValueError, match=r"none of the choices '15', '31' read as .*'1'"
    ):
        match("1", ["15", "31"])
    with pytest.raises(ValueError, match="2 of the choices"):
        match("15", ["15", "$15$"])


def test_number_is_finite_and_alone():
    assert as_number("12.5") == 12.5
    assert as_number("−1e-3") == -0.001
    for text in ["26.5%", "nan", "inf", "about 3", ""]:
        with pytest.raises(ValueError, match="must be a number; the cell prints"):
            as_number(text)


# A page with three questions.

CONF = f"""
extensions = ["myst_nb", "book_figures", "book_ledger", "book_predict", "book_mathjax"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_context = {{"default_mode": "auto"}}
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_css_files = ["book.css", "predict.css"]
html_js_files = [["predict.js", {{"defer": "defer"}}]]
myst_enable_extensions = ["colon_fence", "dollarmath", "smartquotes"]
"""
CHOICES = r"""# Page

:::{predict} How many corrections, at most, if $\gamma \le R$?
:label: bound

- 15: That is how many *it took*.
- $R^2/\gamma^2 = 144$: This leaves out the bias: see `margin` and [this](page.ipynb).
- 131: Yes. $R$ is measured on $(x, 1)$.
:::
"""
NUMBER = """:::{predict} How long does it take?
:label: seconds
:number:
:within: 0.1
:unit: s

Most of it is the first pass.
:::
"""
PLAIN = ":::{predict} Is it odd?\n:label: odd\n\n- Yes: So it is.\n- No: It is.\n:::\n"
COUNT = "## End\n\n:::{predictions}\n:::\n"
KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def answer(label, text, first=""):
    source = f"{first}# answer: {label}\nprint(x)"
    return new_code_cell(source, outputs=[stdout(text)] if text else [])


def build(folder, *cells):
    notebook = new_notebook(cells=cells, metadata=KERNEL)
    nbformat.write(notebook, folder / "index.ipynb")
    (folder / "conf.py").write_text(CONF.replace("page.ipynb", "index.ipynb"))
    out = folder / "_build" / "html"
    paths = os.pathsep.join([str(ROOT / "book" / "_ext"), str(ROOT)])
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-E", folder, out]
    env = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, env=env)


def good():
    first = CHOICES.replace("page.ipynb", "index.ipynb")
    return [
        new_markdown_cell(first),
        answer("bound", "the bound\n131\n"),
        new_markdown_cell(NUMBER),
        answer("seconds", "12.5\n", "# check: once\n"),
        new_markdown_cell(PLAIN),
        answer("odd", "Yes\n"),
        new_markdown_cell(COUNT),
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    done = build(folder, *good())
    assert done.returncode == 0, done.stderr
    return folder / "_build" / "html" / "index.html"


@pytest.fixture(scope="module")
def html(site):
    return BeautifulSoup(site.read_text(), "html.parser")


def test_page_holds_questions_choices_and_a_folded_answer(html):
    first, second, _ = html.select("fieldset.predict")
    assert first["id"] == "bound"
    assert first.legend.get_text().startswith("Prediction 1 How many corrections")
    values = [radio["value"] for radio in first.select("input[type=radio]")]
    assert values == ["15", r"R^2/\gamma^2 = 144", "131"]
    assert first.select_one(".predict-choice .math")
    words = [word.get_text() for word in first.select("details .predict-word")]
    assert words[0].startswith("✓ The answer, 131: Yes.")
    assert words[1] == "✗ Not 15: That is how many it took."
    assert second.label.get_text().split() == ["Your", "guess", "s"]
    assert "12.5 s: Most of it" in second.details.get_text()
    assert "# answer" not in html.get_text()


def test_link_leads_to_the_cell_that_computes(html):
    for link in html.select(".predict-how a"):
        cell = html.find(id=link["href"][1:])
        assert "cell" in cell["class"]
        assert cell.select_one("details pre")


def test_answers_stand_once_more_at_the_end_for_paper(html):
    answers = html.select_one(".predict-answers")
    told = answers.get_text()
    assert [word in told for word in ("131: Yes", "12.5 s", "Yes: So it is")] == [
        True
    ] * 3
    assert "15" not in told.replace("12.5", "")
    assert not answers.select("[id], input, .predict")
    assert not answers.find_next("fieldset")
    ids = [e["id"] for e in html.select("article [id]")]
    assert len(ids) == len({*ids})


TWO = "- 1: A.\n- 2: B.\n"


@pytest.mark.parametrize(
    ("options", "text", "cells", "said"),
    [
        ("", TWO, [], "it must have a label. Write: :label: short-name"),
        (":label: a b", TWO, [], "must be letters, digits and hyphens"),
        (":label: a", TWO, [], "; 0 of this notebook begin with the line: # answer: a"),
        (":label: a", TWO, ["1", "1"], "; 2 of this notebook begin"),
        (":label: a", TWO, [""], "must print it; nothing is stored"),
        (":label: a", TWO, ["3"], "none of the choices '1', '2' read as"),
        (":label: a", "- 1: A.\n- 1: B.\n", ["1"], "2 of the choices '1', '1'"),
        (":label: a", "- 1: A.\n- 2\n", ["1"], "must read '- choice: a word on it'"),
        (":label: a", "- 1: A.\n", ["1"], "one list of two or more choices"),
        (":label: a", "A.\n", ["1"], "For a number, write the option :number:"),
        (":label: a", "", ["1"], "one list of two or more choices"),
        (":label: a\n:unit: s", TWO, ["1"], "go with :number: only"),
        (
            ":label: a\n:number:",
            "A.",
            ["1 s"],
            "must be a number; the cell prints '1 s'",
        ),
        (":label: a\n:number:", TWO, ["1"], "must hold a paragraph"),
        (":label: a\n:number:", "", ["1"], "must hold a paragraph"),
        (":label: a\n:number:\n:within: 10%", "A.", ["1"], "from 0 to 1; got 10%"),
    ],
)
def test_what_cannot_be_answered_is_refused(tmp_path, options, text, cells, said):
    ask = f"# Page\n\n:::{{predict}} How much?\n{options}\n\n{text}\n:::\n"
    done = build(tmp_path, new_markdown_cell(ask), *(answer("a", c) for c in cells))
    assert done.returncode, "the build went through"
    told = " ".join(done.stderr.split())
    assert said in told
    assert "predict" in told


# A reader.

browser_is_here = pytest.mark.skipif(
    CHROMIUM is None, reason="No Chromium on this machine: questions were not asked."
)


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context
    context.close()


def visit(context, site):
    page = context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(error.message))
    page.goto(site.as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise")
    return page


@pytest.fixture
def page(context, site):
    page = visit(context, site)
    yield page
    assert page.complaints == []


def choose(page, label, place):
    field = page.locator(f"fieldset#{label}")
    field.locator("input").nth(place).check()
    field.get_by_role("button", name="Commit").click()
    return field


def words(field):
    shown = field.locator(".predict-said p").all()
    texts = [" ".join(p.inner_text().split()) for p in shown if p.is_visible()]
    return [text for text in texts if text]


@browser_is_here
def test_no_answer_is_seen_or_heard_before_a_guess(page):
    for field in page.locator("fieldset.predict").all():
        expect(field.get_by_role("button", name="Commit")).to_be_visible()
        heard = field.aria_snapshot()
        for told in ("answer", "131: ", "12.5", "So it is", "That is", "Try again"):
            assert told not in heard
            assert told not in field.inner_text()
    expect(page.locator(".predict-answers")).to_be_hidden()
    expect(page.locator(".cell_output").first).to_be_hidden()


@browser_is_here
def test_wrong_guess_is_marked_in_words_beside_the_right_one(page):
    field = choose(page, "bound", 0)
    marks = field.locator(".predict-mark").all_inner_texts()
    assert marks == ["✗ your guess", "", "✓ the answer"]
    guess, right, how = words(field)
    assert guess == "✗ Your guess, 15: That is how many it took."
    assert right.startswith("✓ The answer, 131: Yes.")
    assert how == "How it is computed"
    expect(field.locator(".predict-said")).to_have_attribute("aria-live", "polite")
    expect(field.get_by_role("radio").first).to_be_disabled()
    expect(field.get_by_role("button", name="Try again")).to_be_focused()
    assert not page.locator("fieldset#bound .math:not(:has(mjx-container))").count()


@browser_is_here
def test_right_guess_says_so_once(page):
    field = choose(page, "odd", 0)
    assert field.locator(".predict-mark").all_inner_texts() == ["✓ your guess", ""]
    assert words(field) == ["✓ Right, Yes: So it is.", "How it is computed"]


@browser_is_here
def test_link_unfolds_the_cell(page):
    field = choose(page, "odd", 1)
    field.get_by_role("link", name="How it is computed").click()
    expect(page.locator("#answer-odd .cell_output")).to_be_visible()


@browser_is_here
def test_keyboard_alone_commits_and_tries_again(page):
    page.locator("fieldset#bound input").first.focus()
    for key in ["Space", "ArrowDown", "ArrowDown", "Tab", "Enter"]:
        page.keyboard.press(key)
    field = page.locator("fieldset#bound")
    assert words(field)[0].startswith("✓ Right, 131")
    page.keyboard.press("Enter")  # on Try again
    assert words(field) == []
    expect(field.locator("input").first).to_be_focused()
    expect(field.locator("input:checked")).to_have_count(0)
    page.keyboard.press("Enter")
    assert words(field) == ["Choose one first."]
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert words(field)[0].startswith("✗ Your guess, 15")


@browser_is_here
@pytest.mark.parametrize(
    ("guess", "said"),
    [
        ("12.5", "✓ Right: your guess, 12.5, is exact."),
        ("12", "✓ Right: your guess, 12, is 4 % too small."),
        ("13,75", "✓ Right: your guess, 13,75, is 10 % too large."),
        ("14 s", "✗ Not close enough: your guess, 14 s, is 12 % too large."),
        ("10", "✗ Not close enough: your guess, 10, is 20 % too small."),
        (
            "1,250",
            "✗ Not close enough: your guess, 1,250, is too large by a factor of 100.",
        ),
        ("5", "✗ Not close enough: your guess, 5, is too small by a factor of 2.5."),
        ("−1e1", "✗ Not close enough: your guess, −1e1, is too small by 23."),
        ("0", "✗ Not close enough: your guess, 0, is too small by 13."),
    ],
)
def test_number_says_how_far_off_it_was(page, guess, said):
    entry = page.locator("fieldset#seconds input")
    entry.fill(guess)
    entry.press("Enter")
    assert words(page.locator("fieldset#seconds"))[:2] == [
        said,
        "✓ The answer, 12.5 s: Most of it is the first pass.",
    ]


@browser_is_here
@pytest.mark.parametrize("guess", ["", "many", "1.2.3", "1/0", "Infinity"])
def test_what_is_no_number_is_no_guess(page, guess):
    entry = page.locator("fieldset#seconds input")
    entry.fill(guess)
    entry.press("Enter")
    assert words(page.locator("fieldset#seconds")) == ["Type a number first."]
    expect(entry).to_be_enabled()


@browser_is_here
def test_guesses_are_kept_counted_and_cleared(context, site):
    page = visit(context, site)
    said = page.locator(".predictions p")
    expect(said).to_have_text("You have answered 0 of 3.")
    choose(page, "bound", 2)
    choose(page, "odd", 1)
    expect(said).to_have_text("You have answered 2 of 3, 1 right at the first guess.")
    page.get_by_role("button", name="Try again").last.click()
    expect(said).to_have_text("You have answered 1 of 3, 1 right at the first guess.")
    choose(page, "odd", 0)  # right, but not at first
    page = visit(context, site)
    said = page.locator(".predictions p")
    expect(said).to_have_text("You have answered 2 of 3, 1 right at the first guess.")
    assert words(page.locator("fieldset#odd"))[0] == "✓ Right, Yes: So it is."
    page.get_by_role("button", name="Clear my answers").click()
    expect(said).to_have_text("You have answered 0 of 3.")
    expect(page.locator("fieldset input:checked")).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage).join()").count("predict:") == 0
    page = visit(context, site)
    expect(page.locator(".predictions p")).to_have_text("You have answered 0 of 3.")


@browser_is_here
@pytest.mark.parametrize("stored", ["{", "7", "null", '{"first": "99", "guess": "99"}'])
def test_what_the_page_does_not_offer_is_no_guess(context, site, stored):
    context.add_init_script(f"localStorage.setItem('predict:bound', {stored!r})")
    page = visit(context, site)
    expect(page.locator(".predictions p")).to_have_text("You have answered 0 of 3.")
    choose(page, "bound", 2)
    assert page.complaints == []


@browser_is_here
def test_browser_that_keeps_nothing_still_answers(context, site):
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw Error(); } })"
    )
    page = visit(context, site)
    field = choose(page, "odd", 1)
    assert words(field)[0] == "✗ Your guess, No: It is."
    expect(page.locator(".predictions p")).to_contain_text("1 of 3, 0 right")


@browser_is_here
def test_without_scripts_the_answer_is_folded(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.as_uri())
    field = page.locator("fieldset#odd")
    expect(field.locator(".predict-said")).to_be_hidden()
    expect(field.get_by_role("button")).to_have_count(0)
    expect(page.locator(".predictions")).to_be_hidden()
    field.get_by_text("Answer", exact=True).click()
    expect(field.locator(".predict-said")).to_contain_text("✓ The answer, Yes")
    expect(field.locator(".predict-said")).to_contain_text("✗ Not No: It is.")
    context.close()


@browser_is_here
def test_paper_has_choices_in_place_and_answers_at_the_end(page):
    choose(page, "bound", 0)
    page.emulate_media(media="print")
    field = page.locator("fieldset#bound")
    expect(field.get_by_text("131")).to_have_count(2)
    expect(field.locator(".predict-choice").last).to_be_visible()
    for part in ("button", ".predict-said", ".predict-mark"):
        assert not any(e.is_visible() for e in field.locator(part).all())
    expect(page.locator(".predictions")).to_be_hidden()
    expect(page.locator(".predict-answers")).to_contain_text("The answer, 131: Yes.")
    expect(page.locator(".predict-answers")).to_be_visible()


@browser_is_here
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_questions_are_readable_before_and_after(page, theme):
    page.emulate_media(color_scheme=theme)
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    for guess in (None, 0):
        if guess is not None:
            choose(page, "bound", guess)
            choose(page, "odd", guess)
        rules = ["color-contrast", "label", "button-name", "link-name"]
        rules += ["nested-interactive", "target-size"]
        options = {"runOnly": rules}
        report = Axe().run(page, ".predict", options).response
        found = [node["html"] for v in report["violations"] for node in v["nodes"]]
        assert found == []


@browser_is_here
def test_long_choices_fit_a_phone(page):
    page.locator(".predict-choice").first.evaluate(
        "e => { e.textContent = 'long'.repeat(60) }"
    )
    wide = (
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert page.evaluate(wide)
