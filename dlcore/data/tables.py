"""Tables: measurements that packages ship, points that code makes, and their split."""

import csv
import io
import zipfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_whole
from dlcore.data.wheels import find

__all__ = [
    "StockExchange",
    "credit",
    "nyse",
    "separable",
    "shuttle",
    "spam",
    "split",
    "two_gaussians",
    "xor",
]


class StockExchange(NamedTuple):
    """Days of the New York Stock Exchange, from the end of 1962 to that of 1986.

    Attributes:
        log_volume: log of the trading volume relative to its moving average.
        dj_return: difference of the log of the Dow Jones index to the day before.
        log_volatility: log of the volatility.
        weekday: from 0, Monday, to 4.
        train: whether the day is for training.

    Example:
        >>> nyse().weekday[:6].tolist()
        [0, 1, 2, 3, 4, 0]
    """

    log_volume: Float[ndarray, "6051"]
    dj_return: Float[ndarray, "6051"]
    log_volatility: Float[ndarray, "6051"]
    weekday: Int[ndarray, "6051"]
    train: Bool[ndarray, "6051"]


def nyse() -> StockExchange:
    """Load trading volume, returns and volatility of the New York Stock Exchange.

    Origin: LeBaron and Weigend (1998); as the package ISLP of James et al. (2023) ships
    it, with the 4281 days before 1980 marked for training.

    Returns:
        For each day the log of the trading volume relative to its moving average, the
        difference of the log of the Dow Jones index to the day before, the log of its
        volatility, the weekday from 0, Monday, to 4, and whether it is for training.

    Example:
        >>> days = nyse()
        >>> len(days.train), int(days.train.sum())
        (6051, 4281)
    """
    with zipfile.ZipFile(find("nyse")) as wheel:
        text = wheel.read("ISLP/data/NYSE.csv").decode()
    rows = [*csv.DictReader(io.StringIO(text))]
    days = ["mon", "tues", "wed", "thur", "fri"]

    def column(name: str) -> ndarray:
        return np.array([float(row[name]) for row in rows])

    return StockExchange(
        column("log_volume"),
        column("DJ_return"),
        column("log_volatility"),
        np.array([days.index(row["day_of_week"]) for row in rows]),
        np.array([row["train"] == "TRUE" for row in rows]),
    )


def xor() -> tuple[Float[ndarray, "4 2"], Float[ndarray, "4"]]:
    """Return the four points of XOR, with label +1 where exactly one bit is set.

    Example:
        >>> X, y = xor()
        >>> X.tolist(), y.tolist()
        ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [-1.0, 1.0, 1.0, -1.0])
    """
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

    Example:
        >>> X, y, w = separable(50, 3, 0.2, np.random.default_rng(0))
        >>> round(float((y * (X @ w)).min()), 6)
        0.2
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

    Example:
        >>> X, y = two_gaussians(10_000, 4.0, np.random.default_rng(0))
        >>> round(float(X[y == 1, 0].mean()), 1)
        2.0
    """
    y = rng.choice([-1.0, 1.0], size=s)
    return rng.normal(size=(s, 2)) + np.outer(y, [distance / 2, 0]), y


def shuttle() -> tuple[Float[ndarray, "23 1"], Int[ndarray, "23"]]:
    """Return 23 launches of the space shuttle before the loss of Challenger in 1986.

    Origin: Dalal, Fowlkes and Hoadley, Journal of the American Statistical Association
    84, 1989, after the report of the commission that investigated the accident.

    Returns:
        Temperatures at the joints, in degrees Fahrenheit, and 1 where a sealing ring of
        a field joint showed thermal distress afterwards.

    Example:
        >>> X, y = shuttle()
        >>> y[X[:, 0] < 66].tolist()  # all launches in the cold
        [1, 1, 1, 1]
    """
    spared = [66, 67, 67, 67, 68, 69, 70, 70, 72, 73, 75, 76, 76, 78, 79, 81]
    distressed = [53, 57, 58, 63, 70, 70, 75]
    X = np.array([*distressed, *spared], dtype=float)
    return X[:, None], np.repeat([1, 0], [7, 16])


def credit(s: int, rng: Generator) -> tuple[Float[ndarray, "s 3"], Int[ndarray, "s"]]:
    r"""Draw made-up customers of a bank, one in thirty of whom fails to pay.

    The columns are those of the data set ``Default`` of James et al. (2023): the
    balance of the credit card and the income, in dollars, and 1 for students. Students
    earn less and owe more. The chance to fail is :math:`\sigma(-10.5 + 0.0057\,
    \text{balance} - 0.65\, \text{student})`: the income is of no use.

    Returns:
        Customers, and 1 for those who fail to pay.

    Example:
        >>> X, y = credit(100_000, np.random.default_rng(0))
        >>> round(float(y.mean()), 2)
        0.03
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


def spam(s: int, rng: Generator) -> tuple[Float[ndarray, "s 57"], Int[ndarray, "s"]]:
    """Draw made-up e-mails, two in five of them spam, as 57 numbers each.

    The shape is that of the data set ``Spambase`` (Hopkins et al. 1999): shares of 48
    words and 6 characters, in per cent of the text, most of them zero, and 3 lengths of
    runs of capital letters, with a long tail. Twelve words are commoner in spam, twelve
    in other mail, and the rest tell nothing; capitals run longer in spam.

    Returns:
        E-mails, and 1 for spam.

    Example:
        >>> X, y = spam(10_000, np.random.default_rng(0))
        >>> round(float(y.mean()), 1), bool(X[y == 1, 0].mean() > X[y == 0, 0].mean())
        (0.4, True)
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


def split(s: int, sizes: Sequence[int], rng: Generator) -> list[Int[ndarray, "_"]]:
    """Split the numbers 0 … s − 1 at random into parts, such as training and test set.

    Args:
        s: number of examples.
        sizes: of the parts, such as training, validation and test set.
        rng: source of randomness.

    Returns:
        For each part the rows that belong to it: ``X[rows], y[rows]``.

    Example:
        >>> train, test = split(10, [7, 3], np.random.default_rng(0))
        >>> len(train), len(test), sorted([*train.tolist(), *test.tolist()])
        (7, 3, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
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
