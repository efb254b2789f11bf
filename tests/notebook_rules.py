"""What every page of the book obeys.

A rule takes a page and the book and yields a sentence for each breach: where it is, what is
wrong, and the edit or command that mends it. Code cells count from 0, as nbval counts them.
"""

import ast
import builtins
import math
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from book_code import modules
from book_figures import INSTALL
from book_pages import Book, Page, directives, is_explore, is_live, is_statement, words
from book_predict import names_answer, printed
from book_sheets import figures
from IPython.core.inputtransformer2 import TransformerManager
from stored_book import VARIES

from tasks import install_line

MAX_LINES = 30  # of a code cell
MAX_IGNORED = 1 / 4  # of the code cells may hide their output from nbval
MAX_SECONDS = 60  # of one core, to run a page
# Pages that train on all of MNIST, or build a transformer, may take longer.
MAX_SECONDS_LONG = 120
MIN_READ = 1 / 2  # of the lines of code in view are there to be read
MAX_WORDS = 5000  # in the open
MIN_BUILT = 5  # lines of what an exercise builds
MIN_ASKED, MAX_ASKED = 3, 6  # predictions in the text

MACHINE = re.compile(
    r"(?:file://|(?<![\w:./~)}-]))/(?:root|home|work|tmp|Users)(?![\w-])"
    r"|\b[A-Za-z]:\\+Users"
)
UNWANTED = re.compile(
    r"\bTODO\b|(?i:\bdelv(?:e|es|ed|ing)\b|\bit\s+is\s+important\s+to\s+note\b)"
)
# What nbval obeys: a tag, or a comment on a line of its own.
# Or what its plugin obeys: a tag for pictures that show what is rounded.
IGNORED = re.compile(
    r"(?im)^(\s*#+\s*)?(nbval|pytest-validate)-(ignore|ignore-output|skip)\s*$"
    f"|^{VARIES}$"
)
UNCHECKED = re.compile(r"(?im)^(\s*#+\s*)?(nbval-skip|(nbval-)?raises-exception)\s*$")

DRAWING = {"plt", "fig", "ax", "axes"}
CLOCKS = {"perf_counter", "process_time", "thread_time", "monotonic", "timeit"}
CLOCKS |= {f"{clock}_ns" for clock in CLOCKS} | {"default_timer"}
GROW = {"append", "extend", "insert", "add", "update", "setdefault"}
# Among the first comments of a cell: the exercise that it solves.
SOLUTION = re.compile(r"\A(?:#.*\n)*?# solution: (\S+)[ \t]*$", re.M)
PROGRAM = re.compile(r"^ *```python\n([\s\S]*?)^ *```", re.M)

Rule: TypeAlias = Callable[[Page, Book], Iterator[str]]


def line_of(found: re.Match[str]) -> str:
    """Return the line around a match, or what fits of it."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    return (before.split("\n")[-1][-40:] + found[0] + after.split("\n")[0][:40]).strip()


def python(source: str) -> str:
    """Return what IPython makes of a cell."""
    return TransformerManager().transform_cell(source)


def is_assertion(node: ast.AST) -> bool:
    """Tell whether a statement asserts: assert, np.testing.assert_allclose(...)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        return name.startswith("assert_")
    return isinstance(node, ast.Assert)


def draws(node: ast.AST, names: set[str]) -> bool:
    """Tell whether an expression is one of the names, or a call on or with one.

    So are ``ax.plot(x)``, ``axes[0].set(...)`` and ``plot_points(X, y, square(ax, 1))``.
    """
    match node:
        case ast.Name():
            return node.id in names
        case ast.Attribute() | ast.Subscript() | ast.Starred():
            return draws(node.value, names)
        case ast.Call():
            given = [*node.args, *(k.value for k in node.keywords)]
            return any(draws(part, names) for part in [node.func, *given])
    return False


def bound(target: ast.AST) -> set[str]:
    """Return the names that an assignment binds or changes, without indices."""
    match target:
        case ast.Name():
            return {target.id}
        case ast.Tuple() | ast.List():
            return set().union(*map(bound, target.elts))
        case ast.Attribute() | ast.Subscript() | ast.Starred():
            return bound(target.value)
    return set()


def pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[set[str], ast.AST]]:
    """Yield the names of a target, each with its own part of the value if it has one."""
    match target, value:
        case ast.Tuple(elts=targets), (
            ast.Tuple(elts=values) | ast.Call(func=ast.Name(id="zip"), args=values)
        ) if len(targets) == len(values):
            for one in zip(targets, values, strict=True):
                yield from pairs(*one)
        case _:
            yield bound(target), value


def loops(tree: ast.AST) -> Iterator[tuple[set[str], ast.AST]]:
    """Yield the names that go through something, each with what it goes through.

    Of a call only the function: ``times.items()`` are times, ``range(times)`` are not.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            for targets, values in pairs(node.target, node.iter):
                is_call = isinstance(values, ast.Call)
                yield targets, values.func if is_call else values


def assignments(tree: ast.AST) -> Iterator[tuple[set[str], ast.AST]]:
    """Yield the names that statements bind, each with what it binds them to."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign():
                for target in node.targets:
                    yield from pairs(target, node.value)
            case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr() if node.value:
                yield bound(node.target), node.value


def parts(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements inside a statement, without docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.excepthandler | ast.match_case):
            yield from parts(child)
        elif isinstance(child, ast.stmt) and not (
            isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        ):
            yield child


def lines_to_read(source: str) -> tuple[int, int]:
    """Return how many lines a cell has, and how many of them are there to be read.

    Blank lines and comments are no lines. Not there to be read are statements that import,
    assert or only draw, and blocks and functions of nothing else. A statement only draws
    if it is, binds or returns a call on or with ``plt``, ``fig``, ``ax``, ``axes``, or a
    name that was bound to such a call.
    """
    code = python(source)
    tree = ast.parse(code)
    names = set(DRAWING)
    for targets, value in [*assignments(tree), *loops(tree)]:
        names |= targets if draws(value, names) else set()

    def serves(node: ast.stmt) -> bool:
        if inside := list(parts(node)):
            return all(map(serves, inside))
        shown = getattr(node, "value", None)
        return (
            isinstance(node, ast.Import | ast.ImportFrom)
            or is_assertion(node)
            or (shown is not None and draws(shown, names))
        )

    def skipped(node: ast.AST) -> Iterator[int]:
        for part in parts(node):
            if serves(part):
                yield from range(part.lineno, (part.end_lineno or part.lineno) + 1)
            else:
                yield from skipped(part)

    lines = {
        n
        for n, line in enumerate(code.split("\n"), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    return len(lines), len(lines - {*skipped(tree)})


def timed(tree: ast.AST, known: set[str]) -> set[str]:
    """Return the names in a cell whose values come from a clock.

    These are the names of what is assigned, or grows by, an expression that mentions a clock
    or such a name, and of functions that return one, but not those that return it beside
    other things. Scopes are not told apart.
    """
    names = {*known}
    while True:
        new = set()
        for targets, value in [*assignments(tree), *loops(tree)]:
            new |= targets if tells_time(value, names) else set()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=name)) if name in GROW:
                    if any(tells_time(given, names) for given in node.args):
                        new |= bound(node.func)
                case ast.FunctionDef():
                    ends = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
                    values = [
                        n.value for n in ends if not isinstance(n.value, ast.Tuple)
                    ]
                    if any(v and tells_time(v, names) for v in values):
                        new.add(node.name)
        if new <= names:
            return names
        names |= new


def tells_time(node: ast.AST, names: set[str]) -> bool:
    """Tell whether an expression mentions a clock or one of the names."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) if name in CLOCKS | names:
                return True
            case ast.Attribute(value=ast.Name(id="time"), attr="time" | "time_ns"):
                return True
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if (
                name in CLOCKS
            ):
                return True
    return False


def asserts(source: str) -> bool:
    """Tell whether a cell asserts something that depends on a variable."""
    try:
        tree = ast.parse(python(source))
    except SyntaxError:
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}

    def executed(node: ast.AST) -> Iterator[ast.AST]:
        if not isinstance(node, ast.FunctionDef) or node.name in called:
            yield node
            for child in ast.iter_child_nodes(node):
                yield from executed(child)

    def varies(node: ast.AST) -> bool:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return bool(names - set(dir(builtins))) and not isinstance(node, ast.Tuple)

    for node in executed(tree):
        if isinstance(node, ast.Assert) and varies(node.test):
            return True
        if isinstance(node, ast.Call) and any(map(varies, node.args)):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if function.startswith("assert_"):
                return True
    return False


def is_listed(page: Page, book: Book) -> Iterator[str]:
    name = page.path.rsplit(".", 1)[0]
    if name not in book.toc:
        yield f"{page.path} is not in the contents. Add to _toc.yml: - file: {name}"


def has_unique_labels(page: Page, book: Book) -> Iterator[str]:
    def labels(page: Page) -> list[str]:
        figures = [c.about.get("figure") for c in page.code]
        return [*filter(None, [*(d.label for d in page.directives), *figures])]

    for label in sorted(set(labels(page))):
        where = [
            path for path, p in book.pages.items() for x in labels(p) if x == label
        ]
        if len(where) > 1:
            yield f"{page.path}: the label {label} stands in {', '.join(where)}. Rename one."


def names_no_machine(page: Page, book: Book) -> Iterator[str]:
    for name, cell in zip(page.names, page.cells, strict=True):
        texts = [cell.source]
        for output in cell.get("outputs", []):
            data = output.get("data", {}).items()
            texts += [output.get("text", ""), *output.get("traceback", [])]
            texts += [str(value) for mime, value in data if "image" not in mime]
        for found in filter(None, map(MACHINE.search, texts)):
            yield f"{name} names a folder of one machine: {line_of(found)!r}. Remove it."


def speaks_plainly(page: Page, book: Book) -> Iterator[str]:
    for name, cell in zip(page.names, page.cells, strict=True):
        for found in UNWANTED.finditer(cell.source):
            line = line_of(found)
            yield f"{name} says {found[0]!r} in {line!r}. Do it, or leave it out."


def states_nothing(page: Page, book: Book) -> Iterator[str]:
    for d in page.claims:
        yield f"{page.path}, {d.name}: only a notebook can give evidence. Move it to one."


def uses_the_kernel(page: Page, book: Book) -> Iterator[str]:
    name = page.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"{page.path} has the kernel {name!r}. Choose Python 3 in JupyterLab and save."


def opens_with_aims(page: Page, book: Book) -> Iterator[str]:
    text = next((c.source for c in page.cells[:1] if c.cell_type == "markdown"), "")
    title = re.match(r"(?:\([\w:-]+\)=\s+)*# \S", text)
    for what, found in [
        ("# Title", title),
        ("You will", "You will" in text),
        ("You need", "You need" in text),
    ]:
        if not found:
            yield f"{page.path} opens without {what!r}. Write it into the first cell, a text."


def is_executed(page: Page, book: Book) -> Iterator[str]:
    for want, c in enumerate(page.code, 1):
        if (got := c.cell.execution_count) != want:
            yield f"{c.name} has execution count {got}, not {want}. {page.again}"
            return


def stores_no_trouble(page: Page, book: Book) -> Iterator[str]:
    for c in page.code:
        for output in c.cell.outputs:
            if output.output_type == "error":
                yield f"{c.name} stores an error, {output.ename}. Mend it. {page.again}"
            if output.get("name") == "stderr":
                said = output.text.strip().split("\n")[0]
                yield f"{c.name} stores a warning, {said!r}. Mend its cause. {page.again}"


def supports_its_statements(page: Page, book: Book) -> Iterator[str]:
    for d in page.claims:
        name = f"{page.path}, {d.name}"
        if not d.label:
            yield f"{name} has no label. Write as its first line: :label: <short-name>"
        elif not any(c.evidence == d.label and c.place > d.place for c in page.code):
            yield (
                f"{name} has no evidence. Write below it a cell that asserts what it says and "
                f"begins with the line: # evidence: {d.label}"
            )
        proved = bool(re.search(r"\{cite(:\w+)?\}`", d.title + d.body))
        for other in page.directives[page.directives.index(d) + 1 :]:
            if other in page.claims:
                break
            is_proof = other.kind == "prf:proof" or re.match("proof", other.title, re.I)
            proved = proved or bool(is_proof and other.body.strip())
        if not proved:
            yield (
                f"{name} is neither proved nor cited. Write a {{prf:proof}} before the next "
                "statement, or {cite:t}`source` into this one."
            )


def checks_in_evidence(page: Page, book: Book) -> Iterator[str]:
    known = {
        d.label for p in book.pages.values() for d in p.directives if is_statement(d)
    }
    for c in page.code:
        lines = c.source.split("\n")
        head = rf"# evidence: {c.evidence}(: \S.*)?\s*"
        if c.evidence is None or not re.fullmatch(head, lines[0]):
            if re.search(r"^\s*#\s*evidence\b", c.source, re.I | re.M):
                yield f"{c.name}: name evidence in the first line, as # evidence: <label>"
            continue
        if c.evidence not in known:
            yield f"{c.name}: no statement has the label {c.evidence}. Correct it."
        if not asserts(c.source):
            yield f"{c.name} asserts nothing that could fail. Assert what it computes."
        if UNCHECKED.search(c.marks()):
            yield f"{c.name} is evidence that nbval does not check. Remove its tag."


def answers_its_predictions(page: Page, book: Book) -> Iterator[str]:
    answers = {c.place: names_answer(c.source) for c in page.code}
    asked = [d for d in page.directives if d.kind == "predict"]
    for d in asked:
        name = f"{page.path}, {d.name}"
        below = [at for at, label in answers.items() if label == d.label]
        if not d.label:
            yield f"{name} has no label. Write as its first line: :label: <short-name>"
        elif not any(at > d.place for at in below):
            yield (
                f"{name} has no answer. Write below it a code cell that prints the answer "
                f"last and begins with the line: # answer: {d.label}"
            )
        elif len(below) > 1:
            yield f"{name} has {len(below)} cells that answer it. Keep one below it."
    for c in page.code:
        label = answers[c.place]
        if label is None:
            if re.search(r"^\s*#\s*answer\b", c.source, re.I | re.M):
                yield f"{c.name}: name the answer in the first lines, as # answer: <label>"
            continue
        if label not in {d.label for d in asked}:
            yield f"{c.name}: no prediction of the page has the label {label}. Correct it."
        if not printed(c.cell):
            yield f"{c.name} prints no answer. Print it in the last line. {page.again}"
        if IGNORED.search(c.marks()):
            yield f"{c.name} is an answer that nbval does not compare. Remove its mark."


def asks_predictions(page: Page, book: Book) -> Iterator[str]:
    """Questions below the summary are a self-check, and not counted."""
    texts = [c.source for c in page.cells if c.cell_type == "markdown"]
    text, *_ = re.split(r"(?m)^## Summary\b", "\n\n".join(texts))
    n = sum(d.kind == "predict" for d in directives(0, text))
    if not MIN_ASKED <= n <= MAX_ASKED:
        yield (
            f"{page.path} asks for {n} predictions, not {MIN_ASKED} to {MAX_ASKED}. Where a "
            "section opens with a question, write it as :::{predict} <question>"
        )
    asked = [d.kind for d in page.directives if d.kind.startswith("predict")]
    if asked[-1:] != ["predictions"] or asked.count("predictions") > 1:
        yield f"{page.path}: write one :::{{predictions}} below the last question."


def hints_before_solutions(page: Page, book: Book) -> Iterator[str]:
    exercise, hinted = None, set()
    for d in page.directives:
        if d.kind == "exercise":
            exercise = d.label
        elif d.folds and re.match("hint", d.title, re.I) and d.body.strip():
            hinted.add(exercise)
        elif d.kind == "solution" and d.title not in hinted:
            yield (
                f"{page.path}: the exercise {d.title} has no hint. Write between it and its "
                "solution what to try first: :::{dropdown} Hint"
            )


def builds_something(page: Page, book: Book) -> Iterator[str]:
    """An exercise with ``:class: build`` asks for a program, and its solution has one.

    The program is a block of code in the solution, or a code cell below it, which is
    folded and says among its first comments ``# solution: <label of the exercise>``.
    """
    exercises = {d.label: d for d in page.directives if d.kind == "exercise"}
    solutions = {d.title: d for d in page.directives if d.kind == "solution"}
    named = [(c, of) for c in page.code if (of := SOLUTION.match(c.source))]
    built = [label for label, d in exercises.items() if "build" in d.classes]
    for label in built:
        programs = []
        if solution := solutions.get(label):
            programs += PROGRAM.findall(solution.body)
            below = [(c, of) for c, of in named if c.place > solution.place]
            programs += [c.source for c, of in below if of[1] == label]
        sizes = [sum(map(bool, map(str.strip, p.split("\n")))) for p in programs]
        if max(sizes, default=0) < MIN_BUILT:
            yield (
                f"{page.path}: the solution of {label} has no program of {MIN_BUILT} lines. "
                "Write it there as ```python, or below as a folded cell with the first line "
                f"# solution: {label}"
            )
    if not built:
        yield (
            f"{page.path} has no exercise that builds something. Let one ask for a program, "
            "and write below its label: :class: build"
        )
    for c, of in named:
        if of[1] not in exercises:
            yield f"{c.name}: no exercise has the label {of[1]}. Correct it."
        if c.in_view():
            yield f"{c.name} shows a solution before it is asked for. Tag it hide-input."


def shows_code_to_read(page: Page, book: Book) -> Iterator[str]:
    # A cell that asserts is a check, however it is mixed.
    counts = [
        (n, 0 if asserts(c.source) else read)
        for c in page.code
        if c.in_view()
        for n, read in [lines_to_read(c.source)]
    ]
    lines, read = (sum(n) for n in zip(*counts, strict=True)) if counts else (0, 0)
    if read < max(1, MIN_READ * lines):
        yield (
            f"{page.path} shows {lines} lines of code, of which {read} are there to be read, "
            f"less than {MIN_READ:.0%}. Show the algorithm whole, begin cells that check with "
            "# check: <what was tried>, tag cells that draw or import hide-input."
        )


def is_short(page: Page, book: Book) -> Iterator[str]:
    texts = [c.source for c in page.cells if c.cell_type == "markdown"]
    n = sum(1 for text in texts for _ in words(text))
    if n > MAX_WORDS:
        yield (
            f"{page.path} has {n} words in the open, more than {MAX_WORDS}. Leave out what no "
            "later step needs, fold long proofs: :::{dropdown} Proof"
        )


def asserts_no_time(page: Page, book: Book) -> Iterator[str]:
    names: set[str] = set()
    for c in page.code:
        tree = ast.parse(python(c.source))
        stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        names -= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
        names = timed(tree, names)
        for node in ast.walk(tree):
            if is_assertion(node) and tells_time(node, names):
                line = ast.unparse(node).split("\n")[0]
                yield (
                    f"{c.name} asserts what a clock said: {line!r}. Print it, and assert "
                    "what can be counted: steps, calls, operations."
                )


def ignores_few_outputs(page: Page, book: Book) -> Iterator[str]:
    ignored = [c.name for c in page.code if IGNORED.search(c.marks())]
    if len(ignored) > MAX_IGNORED * len(page.code):
        yield (
            f"{page.path}: nbval ignores {len(ignored)} of {len(page.code)} code cells, more "
            f"than {MAX_IGNORED:.0%}. Print what is stable and remove marks from: "
            + "; ".join(ignored)
        )


def describes_its_figures(page: Page, book: Book) -> Iterator[str]:
    for c in page.code:
        shown = c.pictures()
        described = all(is_explore(picture) or is_live(picture) for picture in shown)
        if not described and not c.about.get("alt", "").strip():
            yield f"{c.name} shows a picture. Write as its first line: # alt: <what it shows>"
        if c.about and len(shown) != 1:
            n = len(shown)
            yield f"{c.name} describes one figure and shows {n}. Show one. {page.again}"
        if ("figure" in c.about) != ("caption" in c.about):
            yield f"{c.name}: write both, # figure: <label> and # caption: <text>"
        if late := re.search(r"^\s*#\s*(figure|caption|alt):", c.source, re.M):
            yield f"{c.name}: write # {late[1]}: <text> above everything else in the cell."


def has_short_cells(page: Page, book: Book) -> Iterator[str]:
    for c in page.code:
        n = sum(bool(line.strip()) for line in c.cell.source.split("\n"))
        if n > MAX_LINES:
            yield f"{c.name} has {n} lines, more than {MAX_LINES}. Split it, or use dlcore."


def has_something_to_move(page: Page, book: Book) -> Iterator[str]:
    shown = [picture for c in page.code for picture in c.pictures()]
    if not any(is_explore(picture) or is_live(picture) for picture in shown):
        yield f"{page.path} has no figure to move. Add one with explore(). {page.again}"


def stores_its_frames(page: Page, book: Book) -> Iterator[str]:
    sheets = dict(book.sheets.get(page.path, {}))
    movable = [p for c in page.code for p in c.pictures() if is_explore(p)]
    found = list(figures(page.notebook))
    if len(movable) > len(found):
        yield f"{page.path} has figures to move without a description. {page.again}"
    for figure in found:
        name = f"{page.path}, the figure to move that {figure.name} draws"
        sheet = sheets.pop(figure.name, None)
        sizes = [len(c["texts"]) for c in figure.description["controls"]]
        if sheet is None:
            yield f"{name}: its frames are not stored. {page.again}"
        elif sheet.code != figure.code:
            yield f"{name}: its code has changed since its frames were drawn. {page.again}"
        elif sheet.still != figure.still_hash:
            yield f"{name}: its still is not of its frames. {page.again}"
        elif len(sheet.places) != math.prod(sizes):
            n = len(sheet.places)
            yield f"{name}: {n} frames for {math.prod(sizes)} choices. {page.again}"
    for name in sheets:
        yield f"{page.path}: frames are stored that no {name} draws. {page.again}"


def stays_within_its_budget(page: Page, book: Book) -> Iterator[str]:
    sources = [c.source for c in page.code]
    is_long = any("data.mnist()" in source for source in sources) or any(
        file.stem == "blocks" for file in modules(sources)
    )
    most = MAX_SECONDS_LONG if is_long else MAX_SECONDS
    cost = page.metadata.get("cost")
    if cost is None:
        yield f"{page.path}: what it costs to run is not stored. {page.again}"
    elif cost["seconds"] > most:
        yield (
            f"{page.path} takes {cost['seconds']} s of one core, more than {most}. Train no "
            f"longer than its claims need, compute nothing twice. {page.again}"
        )


def says_how_to_install(page: Page, book: Book) -> Iterator[str]:
    first = page.code[0].cell.source.split("\n")[0] if page.code else ""
    wanted = f"# install: {install_line()}"
    if first != wanted:
        yield f"{page.path}: start the first code cell with: {wanted}"
    for c in page.code[1:]:
        if INSTALL.search(c.cell.source):
            yield f"{c.name}: # install: belongs into the first code cell. Remove it."


def lists_only_pages(book: Book) -> Iterator[str]:
    pages = {path.rsplit(".", 1)[0] for path in book.pages}
    for entry in book.toc:
        if entry not in pages:
            yield f"_toc.yml lists {entry}, which does not exist. Write it or delete the line."


ALL: list[Rule] = [is_listed, has_unique_labels, names_no_machine, speaks_plainly]
ALL += [answers_its_predictions]
PAGE_RULES = [*ALL, states_nothing]
NOTEBOOK_RULES = [
    *ALL,
    uses_the_kernel,
    opens_with_aims,
    is_executed,
    stores_no_trouble,
    supports_its_statements,
    checks_in_evidence,
    ignores_few_outputs,
    describes_its_figures,
    has_short_cells,
    has_something_to_move,
    stores_its_frames,
    stays_within_its_budget,
    says_how_to_install,
    asks_predictions,
    hints_before_solutions,
    builds_something,
    shows_code_to_read,
    is_short,
    asserts_no_time,
]
