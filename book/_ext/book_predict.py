r"""Predict, then see: questions that wait for a guess before they show their answer.

    :::{predict} How many corrections can it take, at most?
    :label: predict-novikoff

    - 15: That is how many it took on these points.
    - 131: Yes. $R$ and $\gamma$ are measured on $(x, 1)$.
    :::

The answer is the last line that a code cell of the same notebook prints, the one whose first
comments hold ``# answer: predict-novikoff``: the plain text of one of the choices. With the
option ``:number:`` it is a number, and the text is a word on it; ``:within: 0.1`` says how
far off a right guess may be, relative to the answer, and ``:unit:`` what is counted.
``{predictions}`` says how many of a page's questions a reader has answered.

``book/_static/predict.js`` brings the questions to life. Without it the answer is folded, and
on paper all answers stand at the end of the page.
"""

import math
import re
from html import escape
from typing import Any, ClassVar

import nbformat
from book_ledger import CHECK, EVIDENCE
from docutils import nodes
from docutils.parsers.rst import directives
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Among the first comments of a cell, on a line of its own.
ANSWER = re.compile(r"\A((?:#.*\n)*?)# answer: (\S+)[ \t]*(?:\n|\Z)")
FOLDED = "The answer, computed"
WITHIN = 0.1
TYPOGRAPHY = str.maketrans("‘’“”−", "''\"\"-", "$`*")


def names_answer(source: str) -> str | None:
    """Return the label of the question that a cell answers, if it answers one."""
    match = ANSWER.match(source)
    return match and match[2]


def printed(cell: NotebookNode) -> str:
    """Return the last line that a cell has printed, or nothing."""
    streams = [o for o in cell.outputs if o.output_type == "stream"]
    text = "".join(o.text for o in streams if o.name == "stdout")
    return text.strip().split("\n")[-1].strip()


def take_answers(notebook: NotebookNode) -> dict[str, list[str]]:
    """Fold the cells that answer, without the comment; return what they print.

    A cell with the tag ``hide-output`` shows its code; the code of evidence is folded
    elsewhere.
    """
    found: dict[str, list[str]] = {}
    for cell in notebook.cells:
        label = cell.cell_type == "code" and names_answer(cell.source)
        if label:
            found.setdefault(label, []).append(printed(cell))
            cell.source = ANSWER.sub(r"\1", cell.source)
            tags = cell.metadata.get("tags", [])
            if not {"hide-output", "hide-cell"} & {*tags}:
                tags = [tag for tag in tags if tag != "hide-input"]
                checks = EVIDENCE.match(cell.source) or CHECK.match(cell.source)
                tags.append("hide-output" if checks else "hide-cell")
            cell.metadata["tags"] = [*tags, f"answer-{label}"]
            options = cell.metadata.setdefault("mystnb", {})
            options.setdefault("code_prompt_show", FOLDED)
            options.setdefault("code_prompt_hide", FOLDED)
    return found


def plain(text: str) -> str:
    """Return a text without what Markdown and typography add to it."""
    return " ".join(text.translate(TYPOGRAPHY).split())


def split(item: nodes.Element) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Split a list item into a choice and the word on it, at the first ": ".

    Colons in formulas, code and links do not count.

    Raises:
        ValueError: if the item has no such colon, no choice or no word.
    """
    choice: list[nodes.Node] = []
    first, *blocks = item.children or [nodes.paragraph()]
    inline = list(first.children) if isinstance(first, nodes.paragraph) else []
    while inline:
        node = inline.pop(0)
        if isinstance(node, nodes.Text):
            while inline and isinstance(inline[0], nodes.Text):
                node = nodes.Text(node + inline.pop(0))
            before, colon, after = re.fullmatch(
                r"(.*?)(?:(:\s)(.*))?", node, re.S
            ).groups()  # type: ignore[union-attr]
            choice += [nodes.Text(before)] if before else []
            if colon:
                rest = [nodes.Text(after.lstrip())] if after.strip() else []
                word = [*rest, *inline]
                if choice and (word or blocks):
                    return choice, [nodes.paragraph("", "", *word), *blocks]
                break
        else:
            choice.append(node)
    raise ValueError(
        f"a choice must read '- choice: a word on it'; got {item.astext()!r}."
    )


def has_formula(found: list[nodes.Node]) -> bool:
    """Return whether formulas are among these nodes."""
    return any(isinstance(node, nodes.math) for node in found)


def match(answer: str, choices: list[str]) -> int:
    """Return the place of the only choice that says the answer.

    Raises:
        ValueError: if no choice does, or more than one.
    """
    places = [i for i, c in enumerate(choices) if plain(c) == plain(answer)]
    if len(places) != 1:
        raise ValueError(
            f"{len(places) or 'none'} of the choices "
            f"{', '.join(map(repr, choices))} read as the answer that is "
            f"computed, {answer!r}; one must. Change the choices, or what the "
            "cell prints last."
        )
    return places[0]


def as_number(answer: str) -> float:
    """Read an answer as a number.

    Raises:
        ValueError: if it is none.
    """
    try:
        number = float(plain(answer))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"the answer must be a number; the cell prints {answer!r}. Print "
            "the number alone, and give its unit as :unit:"
        )
    return number


class Tag(nodes.General, nodes.TextElement):
    """An element of HTML around its children; nothing elsewhere."""


def tag(name: str, /, *children: Any, **attributes: Any) -> Tag:
    """Return an element; ``class_`` is its class, ``data_x`` is ``data-x``."""
    attributes = {
        key.rstrip("_").replace("_", "-"): value
        for key, value in attributes.items()
    }
    texts = [nodes.Text(c) if isinstance(c, str) else c for c in children]
    return Tag("", "", *texts, tag=name, html=attributes)


def enter(writer: Any, node: Tag) -> None:
    """Write the start of an element."""
    written = [
        f" {key}" if value is True else f' {key}="{escape(str(value))}"'
        for key, value in node["html"].items()
    ]
    writer.body.append(f"<{node['tag']}{''.join(written)}>")


def leave(writer: Any, node: Tag) -> None:
    """Write the end of an element."""
    if node["tag"] != "input":
        writer.body.append(f"</{node['tag']}>")


def nothing(writer: Any, node: Tag) -> None:
    """Write the children alone."""


def copies(found: list[nodes.Node]) -> list[nodes.Node]:
    """Copy nodes for a second place on the page, where they are no targets."""
    found = [node.deepcopy() for node in found]
    for node in found:
        for element in node.findall(nodes.Element):
            element["ids"] = []
    return found


def word_on(
    which: str, choice: list[nodes.Node], word: list[nodes.Node], **data: Any
) -> Tag:
    """Return what is said of a choice: "✓ The answer, 131: a word on it"."""
    first, *blocks = [node.deepcopy() for node in word]
    paragraph = tag(
        "p",
        tag("span", which, class_="predict-which"),
        tag("strong", *copies(choice)),
        *([": "] if first.children else []),
        *first.children,
    )
    return tag("div", paragraph, *blocks, class_="predict-word", **data)


class PredictDirective(SphinxDirective):
    """``{predict} Question``: choices, or a number, and a word on each."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "label": directives.unchanged_required,
        "number": directives.flag,
        "within": directives.unchanged_required,
        "unit": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the question; what is wrong with it is an error in a sentence."""
        try:
            return self.question()
        except ValueError as error:
            label = self.options.get("label", self.arguments[0])
            raise self.error(f"predict {label}: {error}") from None

    def question(self) -> list[nodes.Node]:
        """Return the question with its choices, or its field, and its answer."""
        label, answer = self.answer()
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        ask = self.of_number if "number" in self.options else self.of_choices
        attributes, entries, words = ask(label, answer, body)
        n = self.env.temp_data["predictions"] = (
            self.env.temp_data.get("predictions", 0) + 1
        )
        title, messages = self.state.inline_text(self.arguments[0], self.lineno)
        kind = tag("span", f"Prediction {n} ", class_="predict-kind")
        told = tag(
            "p",
            tag("a", "How it is computed", href=f"#answer-{label}"),
            class_="predict-how",
        )
        folded = tag(
            "details",
            tag("summary", "Answer"),
            tag("div", *words, told, class_="predict-said"),
        )
        commit = tag("button", "Commit", type="button", hidden=True)
        return [
            tag(
                "fieldset",
                tag("legend", kind, *title),
                *entries,
                commit,
                folded,
                class_="predict",
                id=label,
                **attributes,
            ),
            *messages,
        ]

    def answer(self) -> tuple[str, str]:
        """Return the label, and what the cell that answers it prints."""
        label = self.options.get("label")
        if not label:
            raise ValueError("it must have a label. Write: :label: short-name")
        if not re.fullmatch(r"[\w-]+", label):
            raise ValueError("its label must be letters, digits and hyphens.")
        found = self.env.temp_data.get("answers", {}).get(label, [])
        if len(found) != 1:
            raise ValueError(
                f"one code cell must compute its answer; {len(found)} of this "
                f"notebook begin with the line: # answer: {label}"
            )
        if not found[0]:
            raise ValueError(
                "the cell that computes its answer must print it; nothing is "
                "stored. Print it last, and run: make notebooks NB=..."
            )
        return label, found[0]

    def of_choices(
        self, label: str, answer: str, body: nodes.Element
    ) -> tuple[dict[str, Any], list[nodes.Node], list[nodes.Node]]:
        """Return the attributes of the question, its choices, the words on them."""
        items = body.children[0].children if body.children else []
        is_list = len(body) == 1 and isinstance(body[0], nodes.bullet_list)
        if not is_list or len(items) < 2:
            raise ValueError(
                "it must hold one list of two or more choices. For a number, "
                "write the option :number:"
            )
        if {"within", "unit"} & {*self.options}:
            raise ValueError(":within: and :unit: go with :number: only.")
        pairs = [split(item) for item in items]
        texts = [nodes.inline("", "", *c).astext() for c, _ in pairs]
        right = match(answer, texts)
        entries: list[nodes.Node] = []
        words: list[nodes.Node] = []
        for i, (choice, word) in enumerate(pairs):
            radio = tag(
                "input",
                type="radio",
                name=f"{label}-choice",
                value=plain(texts[i]),
                autocomplete="off",
                # A formula alone names nothing to a screen reader.
                **(
                    {"aria_label": plain(texts[i])}
                    if has_formula(choice)
                    else {}
                ),
            )
            mark = tag("span", class_="predict-mark")
            text = tag("span", *choice, class_="predict-choice")
            entries.append(tag("label", radio, text, mark))
            is_right = i == right
            said = word_on(
                "✓ The answer, " if is_right else "✗ Not ",
                choice,
                word,
                data_kind="right" if is_right else "wrong",
                data_of=plain(texts[i]),
            )
            # The answer comes first where all words are unfolded.
            words.insert(0 if is_right else len(words), said)
        return {"data_right": plain(texts[right])}, entries, words

    def of_number(
        self, label: str, answer: str, body: nodes.Element
    ) -> tuple[dict[str, Any], list[nodes.Node], list[nodes.Node]]:
        """Return the attributes of the question, its field, the word on it."""
        number = as_number(answer)
        within = self.options.get("within", str(WITHIN))
        if not re.fullmatch(r"\d*\.?\d+", within) or float(within) >= 1:
            raise ValueError(f":within: must be from 0 to 1; got {within}.")
        if not body.children or not isinstance(body[0], nodes.paragraph):
            raise ValueError(
                "a question for a number must hold a paragraph, the word on "
                "its answer, and no list."
            )
        unit = self.options.get("unit", "")
        field = tag(
            "input",
            type="text",
            inputmode="decimal",
            autocomplete="off",
            size=12,
        )
        name = tag("span", "Your guess", class_="predict-choice")
        entry = tag("label", name, field, *([f" {unit}"] if unit else []))
        shown: list[nodes.Node] = [nodes.Text(f"{answer} {unit}".strip())]
        word = word_on(
            "✓ The answer, ", shown, body.children, data_kind="right"
        )
        attributes = {"data_number": number, "data_within": within}
        return attributes, [entry], [word]


class PredictionsDirective(SphinxDirective):
    """``{predictions}``: how many questions of the page a reader has answered."""

    def run(self) -> list[nodes.Node]:
        """Return a place for predict.js to write to."""
        said = tag("p", aria_live="polite")
        clear = tag("button", "Clear my answers on this page", type="button")
        return [tag("div", said, clear, class_="predictions", hidden=True)]


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Take the answers out of a notebook before MyST-NB sees it."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        app.env.temp_data["answers"] = take_answers(notebook)
        source[0] = nbformat.writes(notebook)


def name_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Give the cells that answer an anchor."""
    for cell in doctree.findall(nodes.container):
        for name in cell["classes"]:
            if name.startswith("tag_answer-"):
                cell["ids"].append(name.removeprefix("tag_"))


def collect(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the answers once more at the end of the page, for paper."""
    answers: list[nodes.Node] = []
    for field in doctree.findall(Tag):
        if field["html"].get("class") == "predict":
            legend, *_ = field.children
            words = [
                word
                for word in field.findall(Tag)
                if word["html"].get("data-kind") == "right"
            ]
            question = tag("p", *copies(legend.children))
            word = copies(words)[0]
            word["html"] = {}
            answers.append(tag("div", question, word))
    if answers:
        head = tag("p", "Answers", class_="rubric")
        doctree += tag("div", head, *answers, class_="predict-answers")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    writers = dict.fromkeys(["latex", "text"], (nothing, nothing))
    app.add_node(Tag, html=(enter, leave), **writers)
    app.add_directive("predict", PredictDirective)
    app.add_directive("predictions", PredictionsDirective)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", name_cells)
    app.connect("doctree-resolved", collect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
