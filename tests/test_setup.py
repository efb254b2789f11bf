"""``make`` on a fresh machine: what goes wrong is said in a sentence."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = """#!/bin/sh
case "$1" in
  --version) echo "Python {version}" ;;
  -c) exit {too_old} ;;
  -m) mkdir -p .venv/bin
      printf '#!/bin/sh\\necho "{pip_says}"; exit 1\\n' > .venv/bin/pip
      chmod +x .venv/bin/pip ;;
esac
"""


def make_with(tmp_path, version="3.11.7", too_old=0, pip_says=""):
    """Run the set-up with a Python and a pip that only pretend; return what it says."""
    for name in [
        "Makefile",
        "requirements.txt",
        "constraints.txt",
        "pyproject.toml",
    ]:
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "dlcore").mkdir()
    shutil.copy(ROOT / "dlcore" / "data.py", tmp_path / "dlcore")
    python = tmp_path / "python"
    python.write_text(
        PYTHON.format(version=version, too_old=too_old, pip_says=pip_says)
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "-s", "book", "PYTHON=./python"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert not (tmp_path / ".venv" / "ready").exists()
    return done.stdout


def test_an_old_python_is_named(tmp_path):
    said = make_with(tmp_path, version="3.9.2", too_old=1)
    assert "Python 3.11 or newer is needed; './python' is Python 3.9.2." in said
    assert "make book PYTHON=" in said


@pytest.mark.parametrize(
    ("pip_says", "sentence"),
    [
        (
            "Retrying after connection broken: Failed to establish a new connection",
            "The package index could not be reached.",
        ),
        (
            "ERROR: No matching distribution found for numpy==99",
            "A pinned version could not be installed",
        ),
    ],
)
def test_a_failed_install_says_why(tmp_path, pip_says, sentence):
    said = make_with(tmp_path, pip_says=pip_says)
    assert sentence in said
    assert pip_says in said


def test_every_command_of_the_readme_exists():
    listed = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in [
        "book",
        "test",
        "lab",
        "notebooks",
        "serve",
        "bench",
        "clean",
        "help",
    ]:
        assert f"make {command} " in listed
