import re
from itertools import pairwise
from pathlib import Path

import pytest

from dlcore.data.timeline import ERAS, TIMELINE, era

BOOK = Path(__file__).parents[2] / "book"
SOURCES = {
    key: int(year)
    for key, year in re.findall(
        r"^@\w+\{(\w+),.*?^  year +=.*?(\d{4})",
        (BOOK / "references.bib").read_text(encoding="utf-8"),
        re.M | re.S,
    )
}


def test_every_event_has_a_year_a_name_a_sentence_and_a_source():
    assert len(TIMELINE) > 40
    for event in TIMELINE:
        assert event.what.endswith(".")
        assert all(text == text.strip() != "" for text in event[1:])


def test_events_are_in_order_and_have_different_names():
    years = [event.year for event in TIMELINE]
    assert years == sorted(years)
    assert len({event.name for event in TIMELINE}) == len(TIMELINE)


def test_eras_cover_the_years_without_gap_or_overlap():
    assert all(a.last + 1 == b.first for a, b in pairwise(ERAS))
    assert {era(event.year) for event in TIMELINE} == set(ERAS)
    assert era(1969).name == "units"
    assert era(1970).name == "networks that learn"


def test_a_year_outside_is_refused():
    with pytest.raises(ValueError, match=r"year must lie in \[1600, 2029\]; got 1500"):
        era(1500)


@pytest.mark.parametrize("event", TIMELINE, ids=lambda event: event.name)
def test_every_event_has_a_source_that_the_page_cites(event):
    page = (BOOK / "connectionism/neurons.ipynb").read_text(encoding="utf-8")
    for key in event.cite.split(","):
        assert key in SOURCES, f"add {key} to book/references.bib"
        assert re.search(rf"cite:\w\}}`[^`]*\b{key}\b", page), f"cite {key}"


# Dates as other books give them: the first years are those of publication.
KNOWN = {
    "McCulloch–Pitts units": 1943,
    "the imitation game": 1950,
    "“artificial intelligence”": 1955,
    "Dartmouth workshop": 1956,
    "the perceptron": 1958,
    "back-propagation": 1986,
    "AlexNet": 2012,
    "adversarial networks": 2014,
    "Turing award": 2018,
}


@pytest.mark.parametrize(("name", "year"), KNOWN.items())
def test_years_that_are_often_given_wrongly(name, year):
    assert [e.year for e in TIMELINE if e.name == name] == [year]
