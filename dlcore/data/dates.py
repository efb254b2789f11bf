"""Dates in twelve ways of writing them, and in one: a small language to translate."""

from collections.abc import Callable, Sequence
from datetime import date

from dlcore._torch import Generator, torch
from dlcore.checks import check, check_whole

__all__ = [
    "CHARACTERS",
    "DAYS",
    "FIRST",
    "FORMATS",
    "LAST",
    "MONTHS",
    "ROMAN",
    "ordinal",
    "pairs",
    "split",
    "write",
]

#: The first and the last date that can be written.
FIRST, LAST = date(1969, 1, 1), date(2068, 12, 31)

#: Names of the days of the week, Monday first.
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
#: Names of the months.
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
#: The months as Roman numerals.
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]


def ordinal(n: int) -> str:
    """Return a number with its English ending: 1st, 2nd, 3rd, 4th, …, 11th, …, 21st.

    Example:
        >>> [ordinal(n) for n in (1, 2, 3, 11, 22)]
        ['1st', '2nd', '3rd', '11th', '22nd']
    """
    check_whole("ordinal: n", n, 1)
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{n}{'th' if n % 100 // 10 == 1 else ends.get(n % 10, 'th')}"


def _month(d: date) -> str:
    return MONTHS[d.month - 1]


#: Ways of writing a date, named by what becomes of 7 March 2009.
FORMATS: dict[str, Callable[[date], str]] = {
    "7 March 2009": lambda d: f"{d.day} {_month(d)} {d.year}",
    "March 7, 2009": lambda d: f"{_month(d)} {d.day}, {d.year}",
    "7 Mar 2009": lambda d: f"{d.day} {_month(d)[:3]} {d.year}",
    "Mar 7, 09": lambda d: f"{_month(d)[:3]} {d.day}, {d.year % 100:02}",
    "MARCH 7 2009": lambda d: f"{_month(d).upper()} {d.day} {d.year}",
    "7th of March 2009": lambda d: f"{ordinal(d.day)} of {_month(d)} {d.year}",
    "Saturday, 7 March 2009": lambda d: (
        f"{DAYS[d.weekday()]}, {d.day} {_month(d)} {d.year}"
    ),
    "7.III.2009": lambda d: f"{d.day}.{ROMAN[d.month - 1]}.{d.year}",
    "7.3.2009": lambda d: f"{d.day}.{d.month}.{d.year}",
    "07/03/09": lambda d: f"{d.day:02}/{d.month:02}/{d.year % 100:02}",
    "2009/03/07": lambda d: f"{d.year}/{d.month:02}/{d.day:02}",
    "20090307": lambda d: f"{d.year}{d.month:02}{d.day:02}",
}
"""Ways of writing a date, named by what becomes of 7 March 2009.

All of them tell the date, since a year of two digits is one of the hundred from 1969 to
2068, the rule of POSIX, and since slashes after a short number mean day, month, year.
"""

#: All characters that occur in one of the formats.
CHARACTERS = "".join(
    sorted(
        {
            c
            for text in [*DAYS, *MONTHS, *(m.upper() for m in MONTHS), *ROMAN]
            for c in text
        }
        | set("0123456789 ,./thofstndrd")
    )
)
"""All characters that occur in one of the formats."""


def write(day: date, form: str) -> str:
    """Write a date in one of the twelve ways of :data:`FORMATS`.

    Example:
        >>> write(date(2024, 12, 24), "7.III.2009")
        '24.XII.2024'
    """
    check(form in FORMATS, "write: form", f"be one of {list(FORMATS)}", form)
    check(
        FIRST <= day <= LAST,
        "write: day",
        f"lie between {FIRST} and {LAST}",
        day,
        "Two digits tell a year of one hundred only.",
    )
    return FORMATS[form](day)


def split(sizes: Sequence[int], generator: Generator) -> list[list[date]]:
    """Draw sets of dates without a common member, such as for training and test.

    Args:
        sizes: how many dates each set is to have.
        generator: source of the dates.

    Example:
        >>> train, test = split([20_000, 10_000], torch.Generator().manual_seed(0))
        >>> len({*train}), {*train} & {*test}
        (20000, set())
    """
    for size in sizes:
        check_whole("split: sizes", size, 0)
    total = LAST.toordinal() - FIRST.toordinal() + 1
    rule = f"add up to at most {total}, the number of days"
    check(sum(sizes) <= total, "split: sizes", rule, sum(sizes))
    drawn = torch.randperm(total, generator=generator)[: sum(sizes)]
    days = [date.fromordinal(FIRST.toordinal() + k) for k in drawn.tolist()]
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [days[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def pairs(days: Sequence[date]) -> list[tuple[str, str]]:
    """Return each date in each format, paired with its form in ISO 8601.

    Example:
        >>> examples = pairs([date(2009, 3, 7)])
        >>> len(examples), examples[0]
        (12, ('7 March 2009', '2009-03-07'))
    """
    return [(write(d, form), d.isoformat()) for d in days for form in FORMATS]
