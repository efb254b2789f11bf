"""The history of the field: what happened when, each event with its source.

The events stand in ``timeline.csv``, in the order of their years. ``cite`` names one or
more keys of the book's bibliography, with commas between them.
"""

import csv
from pathlib import Path
from typing import NamedTuple

from dlcore.checks import check_between

__all__ = ["ERAS", "TIMELINE", "Era", "Event", "era"]


class Era(NamedTuple):
    """An era of the history of the field, both years included.

    Attributes:
        name: what it is called.
        first: its first year.
        last: its last year.

    Example:
        >>> ERAS[1]
        Era(name='units', first=1940, last=1969)
    """

    name: str
    first: int
    last: int


class Event(NamedTuple):
    """An event in the history of the field, in a few words and in a sentence.

    Attributes:
        year: when it happened.
        name: in two or three words.
        what: in a sentence.
        cite: keys of the bibliography.

    Example:
        >>> [event.name for event in TIMELINE if event.year == 1943]
        ['McCulloch–Pitts units']
    """

    year: int
    name: str
    what: str
    cite: str


#: The eras of the history of the field, in their order.
ERAS = (
    Era("machines that calculate", 1600, 1939),
    Era("units", 1940, 1969),
    Era("networks that learn", 1970, 1989),
    Era("other learners", 1990, 2009),
    Era("deep networks", 2010, 2029),
)

with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _file:
    #: The events of the history of the field, in the order of their years.
    TIMELINE = tuple(
        Event(int(year), *rest) for year, *rest in [*csv.reader(_file)][1:]
    )


def era(year: int) -> Era:
    """Return the era of :data:`ERAS` that a year belongs to.

    Example:
        >>> era(1958).name
        'units'
    """
    first, last = ERAS[0].first, ERAS[-1].last
    check_between("era: year", year, first, last)
    return next(e for e in ERAS if year <= e.last)
