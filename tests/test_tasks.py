"""The commands of ``tasks.py`` and of ``make``: what each of them runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tasks

ROOT = Path(__file__).resolve().parents[1]
needs_make = pytest.mark.skipif(
    shutil.which("make") is None, reason="make is not installed"
)
NAMES = [command.__name__.replace("_", "-") for command in tasks.COMMANDS]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    """Forget the variables with which the tests were started."""
    for name in ("NB", "ALL", "PORT", "PYTHON", "RUN", "CONFIRM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ran(monkeypatch):
    """Collect what a command would run, and with what."""
    lines: list[tuple[str, dict]] = []

    def run(line, *more, **how):
        lines.append((" ".join([line, *more]), how))

    monkeypatch.setattr(tasks, "ready", lambda: lines.append(("ready", {})))
    monkeypatch.setattr(tasks, "run", run)
    monkeypatch.setattr(tasks, "build_wheel", lambda: ROOT / "README.md")
    monkeypatch.setattr(tasks.shutil, "copy", lambda source, folder: None)
    return lines


def test_every_command_is_listed_with_a_sentence(capsys):
    tasks.main(["help"])
    listed = capsys.readouterr().out
    for name in NAMES:
        assert f"\n  {name:16} " in listed
    tasks.main([])
    assert capsys.readouterr().out == listed


def make(*arguments: str, folder: Path = ROOT) -> str:
    """Return what make says, as if no other make had started the tests."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("M")}
    done = subprocess.run(
        ["make", *arguments], cwd=folder, env=ours, capture_output=True, text=True
    )
    return done.stdout + done.stderr


@needs_make
def test_make_has_the_same_commands():
    listed = make("help", f"PYTHON={sys.executable}")
    assert listed == tasks.listing() + "\n"
    for name in NAMES:
        shown = make("-n", name, "PYTHON=python3.11")
        assert shown == f"python3.11 tasks.py {name}\n"


def test_the_readme_shows_both_ways():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("book", "test"):
        assert f"make {name}" in readme
        assert f"python tasks.py {name}" in readme


WITH_INSTALL_LINE = [
    *(ROOT / name for name in ("README.md", "book/index.md", "book/teaching.md")),
    *sorted((ROOT / "book" / "assignments").glob("*.ipynb")),
]


@pytest.mark.parametrize("file", WITH_INSTALL_LINE, ids=lambda file: file.stem)
def test_whoever_has_one_file_is_told_what_to_install(file):
    text = file.read_text(encoding="utf-8").replace('\\"', '"')
    assert tasks.install_line() in text


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit):
        tasks.main(["bok"])
    assert "invalid choice: 'bok'" in capsys.readouterr().err


@needs_make
def test_make_hands_its_variables_on(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "tasks.py", tmp_path)
    (tmp_path / "dlcore" / "data").mkdir(parents=True)
    (tmp_path / "dlcore" / "data" / "wheels.py").touch()
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\nimport sys\nprint(*sys.argv[1:])\n")
    python.chmod(0o755)
    stamps = (
        "import tasks\n"
        "files = 'requirements.txt', 'constraints.txt', 'pyproject.toml'\n"
        "(tasks.VENV / 'installed').write_text(tasks.digest(*files))\n"
        "(tasks.VENV / 'ready').write_text(tasks.digest('dlcore/data/wheels.py'))\n"
    )
    subprocess.run([sys.executable, "-c", stamps], cwd=tmp_path, check=True)
    some = "NB=book/a.ipynb book/b.ipynb"
    said = make("notebooks", some, f"PYTHON={sys.executable}", folder=tmp_path)
    assert said == "book/_ext/run_notebooks.py book/a.ipynb book/b.ipynb\n"


def test_a_python_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("PYTHON", "python9.99")
    with pytest.raises(SystemExit, match=r"There is no python9\.99\."):
        tasks.main(["help"])


def test_all_notebooks_are_run_later_chapters_first(ran):
    tasks.main(["notebooks"])
    line = ran[1][0].split()
    assert line[:2] == ["python", "book/_ext/run_notebooks.py"]
    notebooks = line[2:]
    assert notebooks == sorted(notebooks, reverse=True)
    assert "book/connectionism/perceptron.ipynb" in notebooks
    assert not any("assignments" in path for path in notebooks)
    pages = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "book").rglob("*.ipynb")
        if path.parent.name not in ("assignments", ".ipynb_checkpoints")
    }
    assert {*notebooks} == pages


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--all", "book/a.ipynb"], {}),
        ([], {"ALL": "1", "NB": "book/a.ipynb"}),
        (["book/a.ipynb"], {"ALL": "1", "NB": "book/b.ipynb"}),
    ],
)
def test_some_notebooks_are_tested_whether_or_not_they_changed(
    ran, monkeypatch, arguments, variables
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tasks.main(["notebooks-test", *arguments])
    line, how = ran[1]
    assert line.endswith(" --all-notebooks book/a.ipynb")
    assert how["PYTHONPATH"] == str(ROOT / "book" / "_ext")


@pytest.mark.parametrize(
    ("arguments", "variables", "line"),
    [
        ([], {}, "python -m runs"),
        (["gpt"], {}, "python -m runs gpt"),
        (["gpt", "--confirm"], {}, "python -m runs gpt --confirm"),
        ([], {"RUN": "gpt"}, "python -m runs gpt"),
        ([], {"RUN": "gpt", "CONFIRM": "1"}, "python -m runs gpt --confirm"),
        ([], {"CONFIRM": "0"}, "python -m runs"),
    ],
)
def test_runs_are_listed_repeated_and_confirmed(
    ran, monkeypatch, arguments, variables, line
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tasks.main(["runs", *arguments])
    assert ran[1] == (line, {"threads": 1})


@pytest.mark.parametrize("all", ["", "0"])
def test_notebooks_that_passed_may_be_skipped(ran, monkeypatch, all):
    monkeypatch.setenv("ALL", all)
    tasks.main(["notebooks-test", "book/a.ipynb"])
    assert "--all-notebooks" not in ran[1][0]


def test_every_check_is_run_in_order(ran):
    tasks.main(["test", "--all", "book/a.ipynb"])
    lines = [line for line, _ in ran if line != "ready"]
    assert [line.split()[0] for line in lines] == [
        *("ruff", "ruff", "mypy", "pytest", "pytest", "jupyter-book", "pytest")
    ]
    assert lines[4].endswith("--all-notebooks book/a.ipynb")
    assert lines[6].endswith("tests/test_site.py")


@pytest.mark.parametrize(
    ("arguments", "variables", "port"),
    [([], {}, 8000), ([], {"PORT": "81"}, 81), (["--port", "82"], {}, 82)],
)
def test_the_port_can_be_chosen(ran, monkeypatch, arguments, variables, port):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tasks.main(["serve", *arguments])
    assert ran[-1][0].endswith(f"_build/html {port}")


def test_only_processes_that_share_the_cores_have_one_thread(ran):
    threads = {}
    for name in ("notebooks", "notebooks-test", "package", "bench", "lab", "book"):
        tasks.main([name])
        threads[name] = ran[-1][1].get("threads")
    assert threads == {
        **dict.fromkeys(["notebooks", "notebooks-test", "package", "bench"], 1),
        **dict.fromkeys(["lab", "book"]),
    }


# How programs are run.


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Let the environment's Python be the one that runs the tests."""
    monkeypatch.setattr(tasks, "tool", lambda name: Path(sys.executable))
    script = tmp_path / "script.py"

    def write(text: str) -> str:
        script.write_text(text)
        return f"python {script}"

    return write


def test_programs_see_the_threads_and_variables_they_are_given(
    program, capfd, monkeypatch
):
    monkeypatch.setenv("DLCORE_EXPLORE", "live")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    names = ["OMP_NUM_THREADS", "MORE", "DLCORE_EXPLORE", "PYTHONUTF8"]
    line = program(f"import os\nprint([os.environ.get(n) for n in {names}])")
    tasks.run(line, threads=1, MORE="more")
    assert capfd.readouterr().out == "['1', 'more', None, '1']\n"
    tasks.run(line)
    assert capfd.readouterr().out == "[None, None, None, '1']\n"


def test_a_program_that_fails_stops_with_its_code_and_a_sentence(program, capfd):
    with pytest.raises(SystemExit) as stopped:
        tasks.run(program("import sys; sys.exit(3)"), failed="Mend it.")
    assert stopped.value.code == 3
    assert capfd.readouterr().err == "Mend it.\n"


def test_programs_of_the_environment_lie_where_the_system_puts_them():
    assert tasks.tool("pip", windows=False) == ROOT / ".venv" / "bin" / "pip"
    scripts = ROOT / ".venv" / "Scripts"
    assert tasks.tool("pip", windows=True) == scripts / "pip.exe"


def test_the_classroom_says_that_it_needs_linux(ran, monkeypatch):
    monkeypatch.setattr(tasks, "WINDOWS", True)
    with pytest.raises(SystemExit, match="The classroom needs Linux"):
        tasks.main(["classroom"])
    tasks.main(["package"])
    assert ran[-1][0].endswith(" --ignore=tests/classroom")


def test_the_book_brings_the_wheel_along(monkeypatch, tmp_path):
    static = tmp_path / "_build" / "html" / "_static"
    static.mkdir(parents=True)
    (static / "executable_deep_learning-0.0.1-py3-none-any.whl").touch()
    wheel = tmp_path / tasks.wheel_name()
    wheel.touch()
    monkeypatch.setattr(tasks, "ready", lambda: None)
    monkeypatch.setattr(tasks, "run", lambda *line, **how: None)
    monkeypatch.setattr(tasks, "build_wheel", lambda: wheel)
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    tasks.main(["book"])
    assert [path.name for path in static.iterdir()] == [wheel.name]


def test_clean_removes_what_was_made_and_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    for name in (".venv", "_build", "dist", "dlcore.egg-info", "book"):
        (tmp_path / name).mkdir()
    tasks.main(["clean"])
    assert [path.name for path in tmp_path.iterdir()] == ["book"]
