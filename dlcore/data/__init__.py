"""Data sets that packages ship, fetched once and read in place, or that code makes."""

from dlcore.data.images import cropped, mnist, mnist_sample, shifted
from dlcore.data.tables import (
    credit,
    nyse,
    separable,
    shuttle,
    spam,
    split,
    two_gaussians,
    xor,
)
from dlcore.data.texts import LETTERS, king_james, king_james_letters, reviews

__all__ = [
    "LETTERS",
    "credit",
    "cropped",
    "king_james",
    "king_james_letters",
    "mnist",
    "mnist_sample",
    "nyse",
    "reviews",
    "separable",
    "shifted",
    "shuttle",
    "spam",
    "split",
    "two_gaussians",
    "xor",
]
