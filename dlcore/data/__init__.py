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
from dlcore.data.texts import king_james, reviews

__all__ = [
    "credit",
    "cropped",
    "king_james",
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
