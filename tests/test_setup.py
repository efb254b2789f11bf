"""The set-up on a fresh machine: what is installed, and what is said when it fails."""

import ast
import importlib.metadata
import json
import os
import re
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tasks

ROOT = Path(__file__).resolve().parents[1]
PYTHON = """#!{python}
import json, sys
with open({calls!r}, "a") as calls:
    print(json.dumps(sys.argv[1:]), file=calls)
for word, said in {fails!r}.items():
    if any(word in argument for argument in sys.argv):
        sys.exit(said)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A copy of the project on Linux, whose Python only writes down what it is asked.

    ``fails`` has words at which it fails, and what it says then.
    """
    if os.name == "nt":
        pytest.skip("a script cannot stand for python.exe")
    for name in ["requirements.txt", "constraints.txt", "pyproject.toml"]:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "dlcore" / "data").mkdir(parents=True)
    (tmp_path / "dlcore" / "data" / "wheels.py").write_text("")
    venv = tmp_path / ".venv"
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    monkeypatch.setattr(tasks, "VENV", venv)
    monkeypatch.setattr(tasks, "LOG", venv / "pip.log")
    monkeypatch.setattr(tasks, "refusal", lambda: None)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)

    def prepare(**fails: str) -> Path:
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        version = "{}.{}.1".format(*sys.version_info)
        (venv / "pyvenv.cfg").write_text(f"home = /bin\nversion = {version}\n")
        (venv / "bin" / "pip").touch()
        python = venv / "bin" / "python"
        python.write_text(
            PYTHON.format(python=sys.executable, calls=str(calls), fails=fails)
        )
        python.chmod(0o755)
        return calls

    return prepare


def asked(calls: Path) -> list[list[str]]:
    """Return what Python was asked, without the compilation beside it."""
    lines = map(json.loads, calls.read_text().splitlines())
    return [line for line in lines if "compileall" not in line]


# A set-up that works.


def test_everything_is_installed_once(machine, capsys):
    calls = machine()
    tasks.ready()
    done = asked(calls)
    assert [line[:3] for line in done[:4]] == [["-m", "pip", "install"]] * 4
    assert done[0][-1] == "pip"
    assert done[2][-2:] == ["-r", "requirements.txt"]
    assert done[3][-2:] == ["-e", "."]
    assert done[4] == ["-m", "dlcore.data"]
    assert len(done) == 5
    said = capsys.readouterr().out
    for what in ["the environment", "the packages, ", "dlcore and its data, "]:
        assert re.search(rf"^  {what}.*\.\.\.$", said, re.M)
        assert re.search(rf"^  {what}.*: \d+ s$", said, re.M)
    tasks.ready()
    assert asked(calls) == done


def test_a_new_requirement_is_installed_and_new_data_are_fetched(machine):
    calls = machine()
    tasks.ready()
    (tasks.ROOT / "dlcore" / "data" / "wheels.py").write_text("# changed")
    tasks.ready()
    assert asked(calls)[5:] == [["-m", "dlcore.data"]]
    (tasks.ROOT / "constraints.txt").write_text("numpy==1")
    tasks.ready()
    assert len(asked(calls)) == 11


def test_an_environment_of_another_python_is_made_anew(machine, monkeypatch):
    machine()
    made = []
    monkeypatch.setattr(tasks.subprocess, "call", made.append)
    tasks.make_environment()
    assert not made
    (tasks.VENV / "pyvenv.cfg").write_text("version = 3.9.2\n")
    tasks.make_environment()
    assert made == [[sys.executable, "-m", "venv", "--clear", str(tasks.VENV)]]


def test_without_venv_the_package_that_has_it_is_named(machine, monkeypatch):
    machine()
    (tasks.VENV / "bin" / "pip").unlink()
    monkeypatch.setattr(tasks.subprocess, "call", lambda command: 1)
    with pytest.raises(SystemExit, match="On Debian and Ubuntu, install python3-"):
        tasks.make_environment()


# PyTorch for CPUs.


def test_on_linux_torch_is_the_build_for_cpus(machine, capsys):
    calls = machine()
    tasks.install()
    (torch,) = [line for line in asked(calls) if line[-1].endswith("+cpu")]
    assert re.fullmatch(r"torch==[\d.]+\+cpu", torch[-1])
    assert f"\n{torch[-1].removesuffix('+cpu')}\n" in (
        tasks.ROOT / "requirements.txt"
    ).read_text(encoding="utf-8")
    assert "--no-deps" in torch
    assert "--index-url" not in torch
    assert "CUDA" not in capsys.readouterr().out


def test_one_variable_names_the_index_for_torch(machine, monkeypatch):
    calls = machine()
    monkeypatch.setenv("TORCH_INDEX", "https://wheels.invalid/cpu")
    tasks.install()
    (torch, *_) = [line for line in asked(calls) if "--index-url" in line]
    assert torch[-3:-1] == ["--index-url", "https://wheels.invalid/cpu"]
    others = [line for line in asked(calls) if line != torch]
    assert not any("wheels.invalid" in " ".join(line) for line in others)


@pytest.mark.parametrize("index", [None, "https://wheels.invalid/cpu"])
def test_where_it_cannot_be_had_the_other_comes_and_its_size_is_said(
    machine, monkeypatch, capsys, index
):
    calls = machine(**{"+cpu": "ERROR: No matching distribution found"})
    if index:
        monkeypatch.setenv("TORCH_INDEX", index)
    tasks.install()
    said = capsys.readouterr().out
    assert f"cannot be had from {index or 'your package index'}." in said
    assert "2.7 GB" in said
    assert "TORCH_INDEX" in said
    assert ["-r", "requirements.txt"] in [line[-2:] for line in asked(calls)]


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_the_usual_build_is_the_one_for_cpus(machine, monkeypatch, system):
    calls = machine()
    monkeypatch.setattr(sys, "platform", system)
    tasks.install()
    assert "+cpu" not in calls.read_text()


# A set-up that fails.


@pytest.mark.parametrize(
    ("said", "sentence"),
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
def test_a_failed_install_says_why(machine, capsys, said, sentence):
    machine(**{"requirements.txt": said, "+cpu": "Retrying"})
    with pytest.raises(SystemExit, match=sentence):
        tasks.ready()
    shown = capsys.readouterr()
    assert said in shown.err
    assert "CUDA" not in shown.out  # without a network that is not the point
    assert said in (tasks.VENV / "pip.log").read_text()
    assert not (tasks.VENV / "installed").exists()
    assert not (tasks.VENV / "ready").exists()


def test_data_that_cannot_be_fetched_are_asked_for_again(machine):
    machine(**{"dlcore.data": "no network"})
    with pytest.raises(SystemExit):
        tasks.ready()
    calls = machine()
    tasks.ready()
    assert asked(calls)[-1] == ["-m", "dlcore.data"]


# Machines on which it cannot work.

LINUX = {
    "version": (3, 12, 1),
    "build": "linux-x86_64",
    "machine": "x86_64",
    "bits": 64,
    "macos": "",
    "libc": ("glibc", "2.36"),
}
MAC = LINUX | {
    "build": "macosx-11.0-universal2",
    "machine": "arm64",
    "macos": "14.0",
    "libc": ("", ""),
}
WINDOWS = LINUX | {"build": "win-amd64", "machine": "AMD64", "libc": ("", "")}


@pytest.mark.parametrize(
    "facts",
    [
        LINUX,
        MAC,
        WINDOWS,
        LINUX | {"version": (3, 11, 0)},
        LINUX | {"version": (3, 14, 9)},
        LINUX | {"build": "linux-aarch64", "machine": "aarch64"},
        LINUX | {"libc": ("glibc", "2.28")},
        MAC | {"macos": "26.1"},
        MAC | {"macos": "10.16"},  # what old builds of Python say on any macOS
    ],
)
def test_machines_that_can(facts):
    assert tasks.refusal(**facts) is None


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            LINUX | {"version": (3, 9, 2)},
            r"^Python 3\.11 to 3\.14 is needed; '.*' is Python 3\.9\.2\.\nUse another one:"
            r" python3\.11 tasks\.py book, or: make book PYTHON=python3\.11$",
        ),
        (WINDOWS | {"version": (3, 15, 0)}, "to 3.14 is needed; .* Python 3.15.0"),
        (LINUX | {"version": (2, 7, 18)}, "is Python 2.7.18"),
        (WINDOWS | {"bits": 32, "build": "win32"}, "A Python for 64 bits"),
        (MAC | {"machine": "x86_64"}, "Apple silicon is needed, .* Intel"),
        (MAC | {"macos": "13.7.8"}, "macOS 14 or newer .* for macOS 13.7.8"),
        (WINDOWS | {"build": "win-arm64"}, "for x64 .* Windows on ARM"),
        (LINUX | {"machine": "riscv64"}, "x86_64 or aarch64 .* for riscv64"),
        (LINUX | {"libc": ("glibc", "2.17")}, "glibc 2.28 or newer .* glibc 2.17"),
        (LINUX | {"libc": ("", "")}, r"glibc 2.28 or newer .* for musl\.$"),
    ],
)
def test_machines_that_cannot_are_told_why(facts, sentence):
    assert re.search(sentence, tasks.refusal(**facts) or "")


def test_they_are_told_at_once(machine, monkeypatch):
    machine()
    monkeypatch.setattr(tasks, "refusal", lambda: "Not here.")
    with pytest.raises(SystemExit, match=r"^Not here\.$"):
        tasks.ready()
    assert not (tasks.ROOT / "calls").exists()


def test_an_environment_that_is_there_may_be_used_from_any_python(machine, monkeypatch):
    machine()
    tasks.ready()
    monkeypatch.setattr(tasks, "refusal", lambda: "Not here.")
    tasks.ready()
    (tasks.ROOT / "constraints.txt").write_text("numpy==1")
    with pytest.raises(SystemExit, match="Not here"):
        tasks.ready()


def test_an_old_python_can_read_the_refusal():
    source = (ROOT / "tasks.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))


def test_the_readme_names_the_versions_that_are_let_in():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    oldest, newest = (f"3.{minor}" for minor in (tasks.OLDEST[1], tasks.NEWEST[1]))
    assert f"Python {oldest} to {newest}" in readme
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text(
        encoding="utf-8"
    )


# The pins.


def pins() -> dict[str, Requirement]:
    """Return all pinned versions by name."""
    lines = [
        re.sub(" *#.*", "", line)
        for file in ("requirements.txt", "constraints.txt")
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
    ]
    found = [Requirement(line) for line in lines if line and line[0] != "-"]
    return {canonicalize_name(pin.name): pin for pin in found}


def environment(system: str, machine: str, python: str) -> dict[str, str]:
    """Return what markers of requirements ask about a machine."""
    names = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
    return {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "nt" if system == "win32" else "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": names[system],
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "sys_platform": system,
    }


OLDEST = "{}.{}.0".format(*tasks.OLDEST)
NEWEST = "{}.{}.0".format(*tasks.NEWEST)


def test_every_pin_admits_the_oldest_and_the_newest_python():
    # Not along sys.path: setuptools adds what it brings along for itself.
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    installed = {
        canonicalize_name(found.name): found
        for found in importlib.metadata.distributions(path=places)
    }
    elsewhere = set()
    for name, pin in pins().items():
        if pin.marker and not pin.marker.evaluate():
            elsewhere.add(name)
            continue
        found = installed[name]
        assert pin.specifier.contains(found.version), f"{name} {found.version}"
        admits = found.metadata.get("Requires-Python", "")
        for python in (OLDEST, NEWEST):
            assert Requirement(f"python{admits}").specifier.contains(python), (
                f"{pin} is for Python {admits}; pin a version that admits {python}."
            )
    assert len(elsewhere) in (1, 2, 3)  # macOS has one of its own, Windows two


@pytest.mark.parametrize("python", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    ("system", "machine"),
    [
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("darwin", "arm64"),
        ("win32", "AMD64"),
    ],
)
def test_all_that_a_system_brings_along_is_pinned(system, machine, python):
    where = environment(system, machine, python)
    pinned = pins()
    waiting = [(pin, "") for pin in pinned.values() if not pin.marker]
    waiting += [(pin, extra) for pin, _ in waiting for extra in pin.extras]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted, extra = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        pin = pinned.get(name)
        assert pin, f"Add a line for {name} to constraints.txt."
        assert not pin.marker or pin.marker.evaluate(where), f"{pin} is needed"
        try:
            brings = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another system, and brings nothing itself
        for more in map(Requirement, brings):
            if not more.marker or more.marker.evaluate(where | {"extra": extra}):
                waiting += [(more, each) for each in ["", *more.extras]]


def test_pins_without_a_wheel_are_found(machine):
    fails = "ERROR: No matching distribution found for "
    calls = machine(**{"torch==9": f"{fails}torch==9", "b==2": f"{fails}b==2"})
    some = ["a==1", "torch==9", "b==2", "c==3"]
    missing = tasks.without_wheel("3.12.0", ["win_amd64", "any"], some)
    assert missing == ["torch==9", "b==2"]
    last = asked(calls)[-1]
    assert last[-2:] == ["a==1", "c==3"]
    assert "--dry-run" in last
    assert last[last.index("--python-version") + 1] == "3.12.0"
    assert last.count("--platform") == 2


def test_an_index_that_does_not_answer_is_no_lack_of_wheels(machine):
    machine(**{"a==1": "Retrying\nNo matching distribution found for a==1"})
    with pytest.raises(SystemExit, match="The package index gave no answer"):
        tasks.without_wheel("3.12.0", ["win_amd64"], ["a==1"])


def test_markers_choose_the_systems_of_a_pin():
    assert "colorama==0.4.6" in tasks.pinned("win32")
    assert "colorama==0.4.6" not in tasks.pinned("linux")
    assert "appnope==0.1.4" in tasks.pinned("darwin")
    everywhere = {str(pin) for pin in pins().values() if not pin.marker}
    for system in ("linux", "darwin", "win32"):
        assert everywhere <= {*tasks.pinned(system)}
