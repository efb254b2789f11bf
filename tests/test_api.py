"""What is public is listed, documented with an example that runs, and in the book."""

import ast
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from book_api import kind, mentioned, modules, own, pages, taught, users, where

ROOT = Path(__file__).parents[1]
FOLDERS = [
    path.stem
    for path in sorted((ROOT / "dlcore").iterdir())
    if not path.stem.startswith(("_", ".")) and path.suffix in ("", ".py")
]
MODULES = [m.__name__ for folder in FOLDERS for m in modules(f"dlcore.{folder}")]
NAMES = [(module, name) for module in MODULES for name in own(import_module(module))]
CALLED = [
    (module, name)
    for module, name in NAMES
    if kind(getattr(import_module(module), name)) != "data"
]
EQUALS = re.compile(r"Equals ``([\w.]+)``")


def test_every_folder_has_a_page():
    listed = (ROOT / "_toc.yml").read_text()
    index = (ROOT / "book/appendix/api/index.rst").read_text()
    for folder in FOLDERS:
        page = ROOT / "book" / "appendix" / "api" / f"{folder}.rst"
        assert f".. api:: dlcore.{folder}\n" in page.read_text()
        assert f"book/appendix/api/{folder}\n" in listed
        assert re.search(rf"api-folders::.* {folder}\b", index)


@pytest.mark.parametrize(
    "file",
    [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "dlcore").rglob("*.py"))
        if not path.name.startswith("_")
    ],
)
def test_functions_and_classes_are_listed_or_have_an_underscore(file):
    made, constants, listed = set(), set(), None
    tree = ast.parse((ROOT / file).read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets) == "__all__":
            listed = {*ast.literal_eval(node.value)}
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        constants |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    assert listed is not None, f"{file} has no __all__"
    public = {name for name in made if not name.startswith("_")}
    assert public <= listed <= public | constants


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_name_is_described(module, name):
    thing = getattr(import_module(module), name)
    if (module, name) in CALLED:
        assert inspect.getdoc(thing)
    else:
        source = inspect.getsource(import_module(module))
        told = rf"^ *#: .*\n( *#: .*\n)*[\w, =]*\b{name}\b"
        assert re.search(told, source, re.M), f"{name} needs a comment that begins #:"


@pytest.mark.parametrize(("module", "name"), CALLED)
def test_every_public_name_has_an_example_that_runs(module, name):
    thing = getattr(import_module(module), name)
    finder = doctest.DocTestFinder(recurse=False)
    scope = {"np": np, "torch": torch, **vars(import_module(module))}
    (examples,) = finder.find(thing, name, globs=scope)
    assert examples.examples, f"{name} has no example"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    told = []
    runner = doctest.DocTestRunner(optionflags=flags)
    with matplotlib.rc_context():
        failed, _ = runner.run(examples, out=told.append)
    assert not failed, "".join(told)


@pytest.mark.parametrize(("module", "name"), CALLED)
def test_what_a_name_equals_exists_and_is_tested(module, name):
    _, folder, *rest = module.split(".")
    test = ROOT / "tests" / folder / f"test_{rest[-1] if rest else folder}.py"
    doc = inspect.getdoc(getattr(import_module(module), name)) or ""
    for other in EQUALS.findall(doc):
        assert resolve(other) is not None
        assert other.split(".")[-1] in test.read_text()


def resolve(name):
    """Return what a dotted name stands for."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            thing = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            thing = getattr(thing, part)
        return thing
    return None


# The pages of a name are found in the notebooks.


def test_a_name_is_found_however_it_is_imported():
    found = mentioned(
        [
            "from dlcore.optimization import optimizers as optim",
            "from dlcore.optimization.optimizers import GD as Descent\nfrom dlcore import data",
            "%matplotlib inline\noptim.Adam(p).step(data.mnist())\nother.Lion",
        ]
    )
    assert "dlcore.optimization.optimizers.Adam" in found
    assert "dlcore.optimization.optimizers.GD" in found
    assert "dlcore.data.images.mnist" in found
    assert "dlcore.optimization.optimizers.Lion" not in found


def test_pages_are_in_the_order_of_reading():
    assert pages()[0] == "book/introduction"
    assert pages().index("book/feedforward/relu") < pages().index(
        "book/transformers/gpt"
    )
    for name, used in users().items():
        assert used == sorted(used, key=pages().index), name


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("connectionism.perceptron.fit", "connectionism/perceptron"),
        ("optimization.optimizers.Adam", "optimization/acceleration"),
        ("optimization.autograd.Tensor", "optimization/autograd"),
        ("recurrence.recurrent.LSTM", "recurrence/gated"),
        ("transformers.attention.attend", "transformers/attention"),
        ("transformers.gpt.GPT", "transformers/gpt"),
    ],
)
def test_a_name_is_taught_where_one_looks_for_it(name, page):
    module, _, last = f"dlcore.{name}".rpartition(".")
    assert taught(import_module(module), last) == f"book/{page}"
    assert f"aught in :doc:`/book/{page}`" in where(import_module(module), last)


def test_what_all_chapters_share_is_taught_nowhere_and_used():
    text = where(import_module("dlcore.data.images"), "mnist")
    assert text.startswith("Used in ")
    assert "`/book/optimization/mnist`" in text
