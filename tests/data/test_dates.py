import re
from datetime import date, datetime, timedelta

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlcore.data import dates

PATTERNS = {
    "7 March 2009": "%d %B %Y",
    "March 7, 2009": "%B %d, %Y",
    "7 Mar 2009": "%d %b %Y",
    "Mar 7, 09": "%b %d, %y",
    "MARCH 7 2009": "%B %d %Y",
    "7th of March 2009": "%dth of %B %Y",
    "Saturday, 7 March 2009": "%A, %d %B %Y",
    "7.III.2009": "%d.%m.%Y",
    "7.3.2009": "%d.%m.%Y",
    "07/03/09": "%d/%m/%y",
    "2009/03/07": "%Y/%m/%d",
    "20090307": "%Y%m%d",
}
EVERY = [
    dates.FIRST + timedelta(days=k) for k in range((dates.LAST - dates.FIRST).days + 1)
]


@pytest.mark.parametrize("form", dates.FORMATS)
def test_every_format_is_read_back_by_python(form):
    for day in EVERY[::37]:
        text = dates.write(day, form)
        text = re.sub(r"(?<=\d)(st|nd|rd)\b", "th", text)
        for number, name in reversed([*enumerate(dates.ROMAN, 1)]):
            text = text.replace(f".{name}.", f".{number}.")
        assert datetime.strptime(text, PATTERNS[form]).date() == day


@pytest.mark.parametrize("form", dates.FORMATS)
def test_formats_are_named_by_their_example(form):
    assert dates.write(date(2009, 3, 7), form) == form


def test_no_text_means_two_dates():
    meanings = {}
    for day in EVERY:
        for write in dates.FORMATS.values():
            assert meanings.setdefault(write(day), day) == day
    assert max(map(len, meanings)) == len("Wednesday, 10 September 2008")
    assert {*"".join(meanings)} == {*dates.CHARACTERS}


@given(st.lists(st.integers(0, 200), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_no_date_is_in_two_sets(sizes, seed):
    sets = dates.split(sizes, torch.Generator().manual_seed(seed))
    assert [*map(len, sets)] == sizes
    drawn = [day for one in sets for day in one]
    assert len({*drawn}) == len(drawn)
    assert all(dates.FIRST <= day <= dates.LAST for day in drawn)
    again = dates.split(sizes, torch.Generator().manual_seed(seed))
    assert sets == again


def test_all_days_can_be_drawn():
    (drawn,) = dates.split([len(EVERY)], torch.Generator().manual_seed(0))
    assert sorted(drawn) == EVERY


def test_pairs_have_each_date_in_each_format():
    made = dates.pairs([date(2009, 3, 7), date(1999, 12, 31)])
    assert len(made) == 24
    assert made[0] == ("7 March 2009", "2009-03-07")
    assert made[-1] == ("19991231", "1999-12-31")


def test_ordinals_by_hand():
    want = "1st 2nd 3rd 4th 10th 11th 12th 13th 20th 21st 22nd 23rd 30th 31st"
    for word in want.split():
        assert dates.ordinal(int(word[:-2])) == word


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: dates.write(date(1950, 1, 1), "7 Mar 2009"),
            "write: day must lie between 1969-01-01 and 2068-12-31; got "
            "1950-01-01. Two digits",
        ),
        (
            lambda: dates.write(date(2000, 1, 1), "3/7/09"),
            "write: form must be one of ['7 March 2009', ",
        ),
        (
            lambda: dates.split([36526], torch.Generator()),
            "split: sizes must add up to at most 36525, the number of days; got 36526",
        ),
        (
            lambda: dates.split([-1], torch.Generator()),
            "split: sizes must be a whole number from 0 on; got -1",
        ),
        (lambda: dates.ordinal(0), "ordinal: n must be a whole number"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
