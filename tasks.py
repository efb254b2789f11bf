"""Everything that a reader, a teacher or a contributor runs, on Linux, macOS and Windows.

    python tasks.py book

``python tasks.py help`` lists the commands. The first of them that needs the environment
``.venv`` makes it, so only the standard library is used here. With ``make`` the same
commands are ``make book`` and so on, and options are variables: ``make serve PORT=8001``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
WINDOWS = os.name == "nt"
LOG = VENV / "pip.log"
OLDEST, NEWEST = (3, 11), (3, 14)
PROXY = "configurable-http-proxy@5.3.0"  # of JupyterHub, from npm

# The systems for which every pinned version must have a wheel, by pip's names.
LINUX = ["manylinux2014", *(f"manylinux_2_{k}" for k in range(5, 29))]
SYSTEMS = {
    "Linux x86_64": ("linux", [f"{tag}_x86_64" for tag in LINUX]),
    "Linux aarch64": ("linux", [f"{tag}_aarch64" for tag in LINUX]),
    "macOS 14 arm64": ("darwin", ["macosx_14_0_arm64"]),
    "Windows x64": ("win32", ["win_amd64"]),
}


# The commands, in the order in which they are listed.


def book(options: Namespace) -> None:
    """Build the book into _build/html."""
    ready()
    run(
        "jupyter-book build -q -W --keep-going .",
        failed="The book was not built: mend the warnings and errors above, then "
        "run: python tasks.py book",
    )
    static = ROOT / "_build" / "html" / "_static"
    for old in static.glob("*.whl"):
        old.unlink()
    shutil.copy(build_wheel(), static)


def test(options: Namespace) -> None:
    """Run every check."""
    for part in (lint, package, notebooks_test, site_test):
        part(options)


def lint(options: Namespace) -> None:
    """Check style and types."""
    ready()
    run(
        "ruff format --check -q .",
        failed=f"To mend the layout of these files, run: {shown(tool('ruff'))} format",
    )
    run("ruff check .")
    run("mypy")


def package(options: Namespace) -> None:
    """Test dlcore, the classroom, the build's extensions and the rules for notebooks."""
    ready()
    # The classroom grades on Linux, and what it imports is not on Windows.
    but = ["--ignore=tests/classroom"] if WINDOWS else []
    run("pytest -q -n auto --ignore=tests/test_site.py", *but, threads=1)


def notebooks_test(options: Namespace) -> None:
    """Execute every notebook, or those named, and compare with the stored outputs."""
    ready()
    run(
        "pytest -q -n auto --dist loadfile --no-loadscope-reorder "
        "-p no:cacheprovider -p stored_book "
        "--nbval --nbval-current-env --nbval-cell-timeout 300",
        *["--all-notebooks"] * options.all,
        *(options.notebooks or all_notebooks()),
        threads=1,
        PYTHONPATH=str(ROOT / "book" / "_ext"),
        failed='Above, "+" is what the notebook has stored and "-" what its cell '
        "gave now.\nIf the new output is right, store it with: "
        "python tasks.py notebooks <the notebook>",
    )


def site_test(options: Namespace) -> None:
    """Test the rendered book in Chromium."""
    book(options)
    run("pytest -q -rs -n auto --dist loadscope tests/test_site.py", threads=1)


def hub_test(options: Namespace) -> None:
    """Test the classroom on a JupyterHub, installed for it (Linux with npm)."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(
            "npm is needed, for the proxy of JupyterHub. On Debian and Ubuntu, "
            "install npm."
        )
    ready()
    run("pip install -q -r classroom/hub/requirements.txt")
    silent = ["--silent", "--no-audit", "--no-fund"]
    if subprocess.call([npm, "install", *silent, "--prefix", str(VENV), PROXY]):
        sys.exit(1)
    run("pytest -q -rs tests/classroom/test_hub.py")


def notebooks(options: Namespace) -> None:
    """Execute notebooks, or those named, and store what they show."""
    ready()
    which = options.notebooks or all_notebooks()
    run("python book/_ext/run_notebooks.py", *which, threads=1)


def runs(options: Namespace) -> None:
    """List the recorded runs; repeat the one named, or confirm it (--confirm)."""
    ready()
    which = [options.name] if options.name else []
    run("python -m runs", *which, *["--confirm"] * options.confirm, threads=1)


def lab(options: Namespace) -> None:
    """Open the notebooks in JupyterLab."""
    ready()
    run(
        "jupyter lab --notebook-dir book --LabApp.news_url=None "
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"
    )


def serve(options: Namespace) -> None:
    """Serve the book on http://localhost:8000 (--port for another)."""
    book(options)
    run(f"python -m http.server --directory _build/html {options.port}")


def bench(options: Namespace) -> None:
    """Compare the speed of dlcore with PyTorch (two minutes)."""
    ready()
    run("python -m benchmarks", threads=1)


def classroom(options: Namespace) -> None:
    """Say how to hand out, grade and return assignments."""
    if WINDOWS:
        sys.exit("The classroom needs Linux, where it grades students' code in a box.")
    ready()
    run("python -m classroom --help")


def wheel(options: Namespace) -> None:
    """Build dlcore into dist, to be installed elsewhere."""
    ready()
    print(f"{shown(build_wheel())}\nIn its folder: {install_line()}")


def pins(options: Namespace) -> None:
    """Ask the package index for a wheel of each pinned version (twenty minutes)."""
    ready()
    complete = True
    for version in range(OLDEST[1], NEWEST[1] + 1):
        for name, (system, tags) in SYSTEMS.items():
            missing = without_wheel(f"3.{version}.0", tags, pinned(system))
            said = f"none for {', '.join(missing)}" if missing else "all"
            print(f"Python 3.{version}, {name}: {said}", flush=True)
            complete = complete and not missing
    if not complete:
        sys.exit(
            "Pin versions that have a wheel in requirements.txt and constraints.txt;\n"
            'where systems differ, add a marker such as ; sys_platform == "win32".'
        )


def clean(options: Namespace) -> None:
    """Remove what these commands made."""
    names = ".venv _build build dist .hypothesis .mypy_cache .pytest_cache"
    folders = [ROOT / name for name in [*names.split(), ".ruff_cache"]]
    for folder in [*folders, *ROOT.glob("*.egg-info")]:
        shutil.rmtree(folder, ignore_errors=True)


FIRST = [book, test, lint, package, notebooks_test, site_test, hub_test]
COMMANDS = [*FIRST, notebooks, runs, lab, serve, bench, classroom, wheel, pins, clean]


# What the commands need.


def tool(name: str, windows: bool = WINDOWS) -> Path:
    """Return where a program of the environment lies."""
    return VENV / f"Scripts/{name}.exe" if windows else VENV / f"bin/{name}"


def shown(path: Path) -> str:
    """Return a path as one types it in the top folder."""
    return os.path.relpath(path, ROOT)


def run(
    line: str,
    *more: str,
    failed: str | None = None,
    threads: int | None = None,
    **environment: str,
) -> None:
    """Run a program of the environment in the top folder, and stop where it fails.

    Args:
        line: the program and its arguments, none of which has a blank.
        more: further arguments.
        failed: what to say when it fails, besides what it says itself.
        threads: of each process. Several that share cores and use all of them fight.
        environment: variables to add.
    """
    name, *arguments = line.split()
    variables = {**surroundings(), **environment}
    if threads:
        for library in ("OMP", "MKL", "OPENBLAS"):
            variables[f"{library}_NUM_THREADS"] = str(threads)
    process = subprocess.Popen(
        [str(tool(name)), *arguments, *more], cwd=ROOT, env=variables
    )
    while process.poll() is None:
        with suppress(KeyboardInterrupt):  # the program has got it too
            process.wait()
    if process.returncode:
        if failed:
            print(failed, file=sys.stderr)
        sys.exit(process.returncode)


def surroundings() -> dict[str, str]:
    """Return the environment variables for the commands."""
    ours = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}
    kept = {k: v for k, v in os.environ.items() if k != "DLCORE_EXPLORE"}
    return {**kept, **ours}


def all_notebooks() -> list[str]:
    """List the notebooks of the book, later chapters first: they take longest."""
    found = {path.relative_to(ROOT) for path in (ROOT / "book").rglob("*.ipynb")}
    left_out = {"assignments", ".ipynb_checkpoints"}
    return sorted(
        (path.as_posix() for path in found if not left_out & {*path.parts}),
        reverse=True,
    )


# The environment: made once, and again when a requirement changes; then the data.


def ready() -> None:
    """Set up what is missing: the environment, the packages, the data."""
    installed, fetched = VENV / "installed", VENV / "ready"
    requirements = digest("requirements.txt", "constraints.txt", "pyproject.toml")
    data = digest("dlcore/data/wheels.py")
    if read(installed) != requirements:
        why_not = refusal()
        if why_not:
            sys.exit(why_not)
        install()
        installed.write_text(requirements)
        fetched.write_text(data)
    if read(fetched) != data:
        run("python -m dlcore.data")
        fetched.write_text(data)


def refusal(
    version: tuple[int, ...] = sys.version_info[:3],
    build: str = sysconfig.get_platform(),
    machine: str = platform.machine(),
    bits: int = 64 if sys.maxsize > 2**32 else 32,
    macos: str = platform.mac_ver()[0],
    libc: tuple[str, str] = platform.libc_ver(),
) -> str | None:
    """Say why the book cannot run with this Python on this machine, if so.

    Where PyTorch has no package, that is known now, and not after minutes.
    """
    numbers = ".".join(map(str, version))
    versions = "Python {}.{} to {}.{}".format(*OLDEST, *NEWEST)
    if not OLDEST <= version[:2] <= NEWEST:
        return (
            f"{versions} is needed; '{sys.executable}' is Python {numbers}.\n"
            "Use another one: python3.11 tasks.py book, or: make book PYTHON=python3.11"
        )
    if bits < 64:
        return f"A Python for 64 bits is needed; '{sys.executable}' has 32."
    no_torch = "is needed, because PyTorch has no package for"
    if build.startswith("macosx"):
        if machine != "arm64":
            return (
                f"A Mac with Apple silicon {no_torch} Intel processors.\nIf this is one, "
                f"'{sys.executable}' was built for Intel: use a Python for arm64."
            )
        release = int(macos.partition(".")[0] or 0)
        if release < 14 and not macos.startswith("10.16"):  # 10.16: unknown
            return f"macOS 14 or newer {no_torch} macOS {macos}."
    if build == "win-arm64":
        return f"A Python for x64 {no_torch} Windows on ARM."
    if build.startswith("linux"):
        if machine not in ("x86_64", "aarch64"):
            return f"x86_64 or aarch64 {no_torch} {machine}."
        name, number = libc
        if name != "glibc" or [*map(int, re.findall(r"\d+", number))] < [2, 28]:
            other = f"{name} {number}" if name else "musl"
            return f"glibc 2.28 or newer {no_torch} {other}."
    return None


def install() -> None:
    """Make the environment and install everything that is pinned."""
    print(
        "Setting up .venv, once: 525 MB to fetch, 2 GB on the disk, some minutes.",
        flush=True,
    )
    with phase("the environment"):
        make_environment()
        LOG.write_text("")
        # The pip that comes with Python may be old and half as fast.
        pip("install", "-c", "constraints.txt", "pip")
    if sys.platform == "linux":
        with phase("PyTorch for CPUs, 190 MB"):
            install_cpu_torch(os.environ.get("TORCH_INDEX"))
    with phase("the packages, 285 MB"), compiling():
        stop_if(pip("install", "--no-compile", "-r", "requirements.txt"))
    with phase("dlcore and its data, 50 MB"), compiling():
        # Without isolation: setuptools is there, and the index is not asked again.
        stop_if(pip("install", "--no-deps", "--no-build-isolation", "-e", "."))
        run("python -m dlcore.data")


def make_environment() -> None:
    """Make ``.venv``, or make it anew when it has another version of Python."""
    made_with = re.search(
        r"^version\w* *= *(\d+\.\d+)", read(VENV / "pyvenv.cfg"), re.M
    )
    same = made_with and made_with[1] == "{}.{}".format(*sys.version_info)
    if same and tool("pip").exists():  # pip comes last
        return
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if subprocess.call(command):
        sys.exit("Could not make .venv. On Debian and Ubuntu, install python3-venv.")


def install_cpu_torch(index: str | None) -> None:
    """Install the build of PyTorch without CUDA, or say that it cannot be had.

    Only Linux needs this: elsewhere it is the one that a package index has.

    Args:
        index: the address of an index that has it; without one the usual is asked.
    """
    pin = next(pin for pin in pinned("linux") if pin.startswith("torch=="))
    options = ["--no-compile", "--no-deps", "--retries", "1"]
    options += ["--index-url", index] if index else []
    said = pip("install", *options, f"{pin}+cpu")
    if said and (index or not unreachable(said)):  # or the next step says it
        print(
            "The build of PyTorch for CPUs (190 MB) cannot be had from "
            f"{index or 'your package index'}.\nThe usual one comes instead, with 2.7 GB "
            "of CUDA. To avoid that, stop now and set TORCH_INDEX\nto the address of an "
            'index for CPUs, which the page "Get started" of PyTorch\'s website has.',
            flush=True,
        )


def pip(*arguments: str) -> str | None:
    """Run pip, and show on a terminal where it is; return what it said if it failed.

    All that it says is kept in a file.
    """
    width = shutil.get_terminal_size().columns - 1
    said = []
    with subprocess.Popen(
        [str(tool("python")), "-m", "pip", *arguments],
        cwd=ROOT,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            said.append(line)
            if sys.stdout.isatty():
                print(f"{line.strip()[:width]:{width}}", end="\r", flush=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.writelines(said)
    return "".join(said) if process.returncode else None


def stop_if(pip_said: str | None) -> None:
    """Stop if pip failed, and say why."""
    if pip_said is None:
        return
    print(*pip_said.splitlines()[-5:], "", sep="\n", file=sys.stderr)
    if unreachable(pip_said):
        sys.exit(
            "The package index could not be reached. Check the network, then try again."
        )
    sys.exit(
        f"A pinned version could not be installed (above; all of it in {shown(LOG)}).\n"
        "Mend its line in requirements.txt or constraints.txt, then try again."
    )


@contextmanager
def compiling() -> Iterator[None]:
    """Compile what is installed meanwhile, on all cores: pip would do it on one.

    Tests that packages bring along are left out, and templates that are no Python fail.
    """
    quiet = ["-q", "-j", "0", "-x", r"[\\/]tests?[\\/]"]
    with subprocess.Popen(
        [str(tool("python")), "-m", "compileall", *quiet, str(VENV)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        except BaseException:
            process.terminate()
            raise


def unreachable(said: str) -> bool:
    """Tell whether pip found no network."""
    return bool(re.search("Retrying|NewConnectionError|name resolution", said))


@contextmanager
def phase(what: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    start = time.monotonic()
    print(f"  {what} ...", flush=True)
    yield
    seconds = f"{time.monotonic() - start:.0f} s"
    width = shutil.get_terminal_size().columns - 1  # over what pip has shown
    print(f"  {what}: {seconds}".ljust(width * sys.stdout.isatty()), flush=True)


def read(path: Path) -> str:
    """Return the text of a file, or nothing if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def digest(*names: str) -> str:
    """Return a hash of files of the top folder."""
    texts = [(ROOT / name).read_bytes() for name in names]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


# The wheel of dlcore, for readers who have one notebook and not this folder.


def wheel_name() -> str:
    """Return the wheel's file name, from the name and version in pyproject.toml."""
    project = read(ROOT / "pyproject.toml")
    name, version = (
        re.findall(f'^{key} = "(.*?)"', project, re.M)[0] for key in ("name", "version")
    )
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def install_line() -> str:
    """Return the command that installs the wheel, as every notebook shows it."""
    return f'pip install "{wheel_name()}[torch]"'


def build_wheel(folder: Path = ROOT / "dist") -> Path:
    """Build the wheel, unless the folder has one that is newer than its sources."""
    built = folder / wheel_name()
    texts = [ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE")]
    modules = ROOT / "dlcore"
    records = [card.parent for card in sorted(ROOT.glob("runs/[!.]*/card.json"))]
    sources = [*texts, modules, *modules.rglob("[!_]*"), *modules.rglob("*.py")]
    sources += [file for record in records for file in record.iterdir()]
    newest = max(path.stat().st_mtime for path in sources)
    if built.exists() and built.stat().st_mtime > newest:
        return built
    folder.mkdir(exist_ok=True)
    build = "import sys, setuptools.build_meta as s; s.build_wheel(sys.argv[1])"
    # In a copy, because setuptools leaves files behind, and finds those left before.
    with tempfile.TemporaryDirectory() as copy:
        for text in texts:
            shutil.copy(text, copy)
        caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(modules, Path(copy, "dlcore"), ignore=caches)
        for record in records:
            shutil.copytree(record, Path(copy, "dlcore", "data", "runs", record.name))
        done = subprocess.run(
            [tool("python"), "-c", build, folder.resolve()],
            cwd=copy,
            env=surroundings(),
            capture_output=True,
            text=True,
        )
    if done.returncode:
        sys.exit(f"{done.stderr}\nThe wheel was not built.")
    return built


# The pins.


def pinned(system: str) -> list[str]:
    """List the pinned versions that a system may install.

    Args:
        system: as ``sys.platform`` has it.
    """
    files = ["requirements.txt", "constraints.txt"]
    files += ["classroom/hub/requirements.txt"] if system == "linux" else []
    found = []
    for line in "\n".join(read(ROOT / file) for file in files).splitlines():
        pin, _, marker = re.sub(" *#.*", "", line).partition(";")
        if pin and not pin.startswith("-"):
            known = re.fullmatch(r' *sys_platform == "(\w+)"', marker)
            if marker and not known:
                sys.exit(
                    f'Only a marker such as sys_platform == "win32" is known: {line}'
                )
            if not known or known[1] == system:
                found.append(pin.strip())
    return found


def without_wheel(python: str, tags: Iterable[str], pins: Iterable[str]) -> list[str]:
    """Ask the package index, through pip, which pins have no wheel.

    Args:
        python: a version of Python.
        tags: the platforms whose wheels will do.
        pins: such as ``numpy==2.4.6``.
    """
    left = [*pins]
    missing: list[str] = []
    command = [str(tool("python")), "-m", "pip", "install", "-qq", "--dry-run"]
    command += ["--target", str(VENV / "none"), "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", python]
    command += [part for tag in tags for part in ("--platform", tag)]
    while True:
        done = subprocess.run(
            [*command, *left], env=surroundings(), capture_output=True, text=True
        )
        if done.returncode == 0:
            return missing
        found = re.search(r"No matching distribution found for (\S+)", done.stderr)
        if not found or found[1] not in left or unreachable(done.stderr):
            sys.exit(f"{done.stderr}\nThe package index gave no answer; see above.")
        missing.append(found[1])
        left.remove(found[1])


# The command line.


def listing() -> str:
    """List the commands, a line each."""
    lines = ["python tasks.py <command>, or make <command>:", ""]
    for command in COMMANDS:
        name = command.__name__.replace("_", "-")
        lines.append(f"  {name:16} {sentence(command)}")
    return "\n".join([*lines, f"  {'help':16} list these commands"])


def sentence(command: Callable[..., None]) -> str:
    """Return what a command does, from its docstring."""
    text = (command.__doc__ or "").rstrip(".")
    return text[:1].lower() + text[1:]


def main(arguments: list[str]) -> None:
    """Run the command that is named; options may also come from the environment."""
    another = os.environ.pop("PYTHON", sys.executable)
    program = shutil.which(another) or sys.exit(f"There is no {another}.")
    if program != sys.executable:
        sys.exit(subprocess.call([program, str(ROOT / "tasks.py"), *arguments]))
    parser = ArgumentParser(prog="python tasks.py", usage=listing())
    commands = parser.add_subparsers(dest="command", metavar="<command>")
    commands.add_parser("help")
    for command in COMMANDS:
        name = command.__name__.replace("_", "-")
        one = commands.add_parser(name, description=f"{command.__doc__}")
        one.set_defaults(run=command)
        if command in (test, notebooks, notebooks_test):
            some = os.environ.get("NB", "").split()
            one.add_argument("notebooks", nargs="*", default=some, metavar="notebook")
        if command in (test, notebooks_test):
            everything = os.environ.get("ALL", "0") not in ("", "0")
            one.add_argument(
                "--all",
                action="store_true",
                default=everything,
                help="skip no notebook, whether or not it has changed since it passed",
            )
        if command is runs:
            one.add_argument("name", nargs="?", default=os.environ.get("RUN", ""))
            one.add_argument(
                "--confirm",
                action="store_true",
                default=os.environ.get("CONFIRM", "0") not in ("", "0"),
                help="accept changed code if it gives the recorded start and figures",
            )
        if command is serve:
            port = int(os.environ.get("PORT", "8000"))
            one.add_argument("--port", type=int, default=port)
    options = parser.parse_args(arguments)
    if "run" not in options:
        print(listing())
        return
    try:
        options.run(options)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
