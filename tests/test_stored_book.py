"""What is stored with a notebook: sheets, costs, pictures; and what makes it stale."""

import base64
import io
import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from book_code import fingerprint, modules, read_module
from book_costs import cost_of, say_cost, spoken
from book_explore import html, make_movable, write_stills
from book_sheets import Sheet, figures, folder, read
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image, ImageDraw
from stored_book import SHARE, difference, start_again

from dlcore.figures.explore import DESCRIPTION, FRAMES

EXTENSIONS = Path(__file__).parents[1] / "book" / "_ext"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
HOSTILE = "</script><!--<script>\"'><b>&amp;"
MOVABLE = """
from dlcore.figures.explore import explore
import matplotlib.pyplot as plt
def shade(k):
    "A square."
    return plt.figure(figsize=(0.4, 0.4), facecolor=str(k / 10))
explore(shade, k=[1, 2, 9])
"""


# What the output of a notebook depends on.


@pytest.fixture
def package(tmp_path):
    """A package of three modules and one in a folder."""
    for name, source in {
        "__init__.py": "",
        "base.py": "x = 1",
        "upper.py": "from dlcore.base import x\ny = x",
        "lazy.py": "def f():\n    from dlcore import base\n    return base.x",
        "other.py": "z = 0",
        "room/__init__.py": "",
        "room/inner.py": "import dlcore.base",
    }.items():
        file = tmp_path / "dlcore" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from dlcore.upper import y", ["base", "upper"]),
        ("import dlcore.lazy as lazy", ["base", "lazy"]),
        ("from dlcore import other, base", ["base", "other"]),
        ("def f():\n    from dlcore.other import z", ["other"]),
        ("from dlcore.room.inner import base", ["base", "inner"]),
        ("from dlcore.room import inner", ["base", "inner"]),
        ("import numpy\nfrom pathlib import Path", []),
        ("%matplotlib inline\nfrom dlcore.other import z", ["other"]),
    ],
)
def test_modules_are_found_through_imports(source, names, package):
    found = [file.stem for file in modules([source], package)]
    assert [name for name in found if name != "__init__"] == names


@pytest.mark.parametrize(
    ("file", "source", "same"),
    [
        ("base.py", "# a remark\nx = 1", True),
        ("base.py", '"""About x."""\n\nx   =   1', True),
        ("base.py", '__all__ = ["x"]\nx = 1', True),
        ("other.py", "z = 2", True),
        ("base.py", "x = 2", False),
        ("upper.py", "from dlcore.base import x\ny = -x", False),
        ("book.mplstyle", "lines.linewidth: 9", False),
        ("base.csv", "1,2", False),
        ("other.csv", "1,2", True),
    ],
)
def test_a_fingerprint_follows_the_code_that_counts(file, source, same, package):
    cells = ["from dlcore.upper import y", "y"]
    before = fingerprint(cells, package)
    (package / "dlcore" / file).write_text(source)
    read_module.cache_clear()
    assert (fingerprint(cells, package) == before) is same


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        (["x = 1  # one", "print(x)"], True),
        (['def f():\n    "Say one."\n    return 1', "f()"], False),
        (["x = 1", "print(x + 0)"], False),
        (["x = 1"], False),
    ],
)
def test_a_fingerprint_follows_the_cells(cells, same):
    assert (fingerprint(cells) == fingerprint(["x = 1", "print(x)"])) is same


def test_docstrings_of_cells_do_not_count():
    one, two = ('def f():\n    "A."\n    return 1', "def f():\n    return 1")
    assert fingerprint([one]) == fingerprint([two])


# Executing notebooks, as `make notebooks` does.


def run(path, *sources):
    cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), path)
    command = [sys.executable, EXTENSIONS / "run_notebooks.py", path]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A notebook that was executed in place."""
    path = tmp_path_factory.mktemp("stored") / "good.ipynb"
    frames = folder(path)
    frames.mkdir(parents=True)
    (frames / "renamed.webp").touch()
    plot = "plt.figure(figsize=(1, 1)).add_subplot().plot([0, 1])\nplt.show()"
    done = run(path, MOVABLE, plot)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("executed good.ipynb in ")
    return path, nbformat.read(path, as_version=4)


def test_notebooks_are_executed_in_place(stored):
    _, notebook = stored
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2]
    data = notebook.cells[1].outputs[0].data
    assert set(data) == {"image/png", "text/plain", DESCRIPTION}
    assert FRAMES not in data


def test_frames_are_moved_into_a_sheet_beside_the_notebook(stored):
    path, notebook = stored
    (figure,) = figures(notebook)
    (file,) = folder(path).iterdir()  # and what no figure draws is removed
    assert file == figure.file(path)
    sheet = read(file)
    assert (sheet.code, sheet.still) == (figure.code, figure.still_hash)
    with Image.open(file) as picture:
        assert picture.format == "WEBP"
        greys = [picture.convert("L").getpixel((x, y)) for x, y in sheet.places]
    assert [round(grey / 255, 1) for grey in greys] == [0.1, 0.2, 0.9]


def test_other_pictures_are_stored_in_few_colours(stored):
    _, notebook = stored
    png = base64.b64decode(notebook.cells[2].outputs[0].data["image/png"])
    picture = Image.open(io.BytesIO(png))
    assert picture.mode == "P"
    assert picture.info["dpi"][0] == pytest.approx(100, abs=1)


def test_costs_are_measured(stored):
    path, _ = stored
    cost = cost_of(path)
    assert cost["seconds"] >= 0
    assert cost["megabytes"] > 50  # matplotlib alone


@pytest.mark.parametrize(
    ("source", "reason"),
    [("1 / 0", "ZeroDivisionError"), ("import os\nos._exit(1)", "Kernel died")],
)
def test_failing_cell_is_reported_with_notebook_and_remedy(source, reason, tmp_path):
    path = tmp_path / "bad.ipynb"
    done = run(path, source)
    assert done.returncode == 1
    assert "bad.ipynb: a cell failed." in done.stderr
    assert reason in done.stderr
    assert done.stderr.rstrip().endswith("then run: make notebooks NB=bad.ipynb")
    assert "run_notebooks.py" not in done.stderr  # no traceback of our own
    assert nbformat.read(path, as_version=4).cells[1].execution_count is None


def test_missing_notebook_is_named(tmp_path):
    command = [sys.executable, EXTENSIONS / "run_notebooks.py", tmp_path / "typo.ipynb"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"There is no notebook {tmp_path / 'typo.ipynb'}.\n"


# Testing notebooks: nbval with the plugin.


def nbval(folder, *names):
    command = "pytest -q -p stored_book --nbval --nbval-current-env --rootdir ."
    return subprocess.run(
        [sys.executable, "-m", *command.split(), *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(EXTENSIONS)},
    ).stdout


def change(path, name, edit):
    """Store a notebook under another name with one change."""
    notebook = nbformat.read(path, as_version=4)
    edit(notebook.cells[1].outputs[0].data)
    nbformat.write(notebook, path.with_name(name))


def black(data):
    buffer = io.BytesIO()
    Image.new("L", (60, 60)).save(buffer, "png")
    data["image/png"] = base64.b64encode(buffer.getvalue()).decode()


def another_label(data):
    data[DESCRIPTION]["controls"][0]["label"] = "kay"


def test_what_is_stored_is_compared_with_what_is_shown(stored):
    path, _ = stored
    change(path, "black.ipynb", black)
    change(path, "label.ipynb", another_label)
    said = nbval(path.parent, path.name, "black.ipynb", "label.ipynb")
    assert "2 failed, 4 passed" in said
    assert "The picture is not the one that is stored: 100% of it" in said
    assert f"mismatch '{DESCRIPTION}'" in said


def test_what_has_passed_is_left_out_until_it_changes(stored):
    path, _ = stored
    assert "2 passed" in nbval(path.parent, path.name, "--all-notebooks")
    said = nbval(path.parent, path.name)
    assert "1 notebook has not changed since passing here." in said
    assert "make test ALL=1" in said
    assert "passed" not in said
    change(path, path.name, another_label)
    assert "1 failed, 1 passed" in nbval(path.parent, path.name)


def test_a_kernel_that_dies_at_its_start_gets_another_chance(capsys):
    deaths = iter([1, 2])

    def start(name):
        if next(deaths, None):
            raise RuntimeError("Kernel died")
        return name

    assert start_again(start)("python3") == "python3"
    assert capsys.readouterr().out.count("started again: Kernel died") == 2
    deaths = iter([1, 2, 3])
    with pytest.raises(RuntimeError, match="Kernel died"):
        start_again(start)("python3")


def line(*points):
    picture = Image.new("RGB", (800, 500), "white")
    ImageDraw.Draw(picture).line(points, "black", width=3)
    return picture


def test_pictures_that_a_reader_cannot_tell_apart_are_the_same():
    straight = line((50, 50), (750, 450))
    assert difference(straight, straight) == 0
    almost = line((50, 51), (750, 450))
    assert 0 <= difference(straight, almost) <= SHARE
    other = line((50, 50), (750, 300))
    assert difference(straight, other) > SHARE
    assert difference(straight, straight.resize((800, 510))) == 1
    assert difference(straight, straight.crop((0, 0, 798, 497))) <= SHARE


# The page.


class Found(HTMLParser):
    """What a browser finds: tags, the texts inside them, and the script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.script = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags[-1][0] == "script":
            self.script += data
        else:
            self.texts.append(data)

    def all(self, wanted):
        return [attrs for tag, attrs in self.tags if tag == wanted]


def control(label="a", texts=("0", "1", "2"), at=0, menu=False):
    return {"label": label, "texts": [*texts], "at": at, "menu": menu}


def page(*controls, about="A square.", play=None):
    sheet = Sheet([60, 60], [[0, 0], [60, 0]], "code", "still")
    about = {"name": "x", "about": about, "controls": controls, "play": play}
    return Found(html(about, sheet, "frames/page"))


def test_page_has_a_slider_for_numbers_and_a_menu_for_names():
    found = page(control(at=2), control("kind", ["up", "down"], 1, menu=True))
    (slider,), (menu,) = found.all("input"), found.all("select")
    assert slider["type"] == "range"
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "2")
    assert (slider["data-size"], slider["aria-valuetext"]) == ("3", "2")
    assert json.loads(slider["data-texts"]) == ["0", "1", "2"]
    assert menu["data-size"] == "2"
    options = found.all("option")
    assert [option["value"] for option in options] == ["0", "1"]
    assert ["selected" in option for option in options] == [False, True]
    assert found.texts == ["a", "2", "kind", "up", "down"]
    assert found.all("button") == []


def test_page_shows_a_still_of_the_right_size_and_describes_it():
    found = page(control(at=2))
    (image,) = found.all("img")
    assert image["src"] == "frames/page/x.still.webp"
    assert (image["width"], image["height"]) == ("40", "40")
    assert image["alt"] == "A square. (a = 2)"
    about = json.loads(found.script)
    assert about["sheet"] == "frames/page/x.webp"
    assert about["places"] == [[0, 0], [60, 0]]


def test_page_plays():
    (button,) = page(control(), play=800).all("button")
    assert button["data-ms"] == "800"


@pytest.mark.parametrize("menu", [True, False])
def test_text_cannot_break_out_of_the_page(menu):
    found = page(control(HOSTILE, [HOSTILE, "x"], menu=menu), about=HOSTILE)
    assert "<" not in found.script  # "<!--<script>" would swallow the end tag
    assert json.loads(found.script)["about"] == HOSTILE
    assert found.all("img")[0]["alt"] == f"{HOSTILE} ({HOSTILE} = {HOSTILE})"
    assert found.texts[0] == HOSTILE
    assert [tag for tag, _ in found.tags].count("b") == 0


def test_missing_sheets_are_named(stored, tmp_path):
    path, notebook = stored
    whole = nbformat.from_dict(notebook)
    assert make_movable(whole, path) == []
    data = whole.cells[1].outputs[0].data
    assert "data-size=3" in data["text/html"]
    assert DESCRIPTION not in data
    alone = nbformat.read(path, as_version=4)
    assert make_movable(alone, tmp_path / "good.ipynb") == ["shade"]


def test_stills_become_files(stored, tmp_path):
    path, notebook = stored
    write_stills(path, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name == "shade.still.webp"
    (figure,) = figures(notebook)
    png = Image.open(io.BytesIO(figure.still))
    with Image.open(file) as still:
        assert still.convert("RGB").tobytes() == png.convert("RGB").tobytes()


def test_costs_are_rounded_up():
    assert spoken({"seconds": 0, "megabytes": 301}) == ("1 s", "0.4 GB")
    assert spoken({"seconds": 12, "megabytes": 1300}) == ("12 s", "1.3 GB")


def test_a_page_says_what_it_costs(stored):
    _, notebook = stored
    costly = nbformat.from_dict(
        {**notebook, "metadata": {"cost": {"seconds": 9, "megabytes": 450}}}
    )
    say_cost(costly)
    said = "To run this page takes 9 s on one core and up to 0.5 GB of memory."
    assert costly.cells[0].source.endswith(said)
