import re
from collections import Counter
from itertools import pairwise
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcore.transformers.wordpiece import SPECIAL, WordPiece, joined, spelled, words

texts = st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=12).map(
    Counter
)


def join(cut, a, b):
    new, i = [], 0
    while i < len(cut):
        both = cut[i : i + 2] == [a, b]
        new.append(joined(a, b) if both else cut[i])
        i += 2 if both else 1
    return new


def likelihood(cuts, counts):
    """Return its logarithm, if pieces are drawn with their shares."""
    n = Counter()
    for word, cut in cuts.items():
        for piece in cut:
            n[piece] += counts[word]
    return sum(k * log(k / n.total()) for k in n.values())


def naive(counts, size):
    """Try every join, and see what becomes of the likelihood."""
    cuts = {word: spelled(word) for word in counts}
    pieces = sorted({piece for cut in cuts.values() for piece in cut})
    while len(pieces) + len(SPECIAL) < size:
        pairs = {pair for cut in cuts.values() for pair in pairwise(cut)}
        tries = {
            pair: {word: join(cut, *pair) for word, cut in cuts.items()}
            for pair in pairs
        }
        now = likelihood(cuts, counts)
        gains = {
            pair: round(likelihood(cut, counts) - now, 6) for pair, cut in tries.items()
        }
        if not gains or max(gains.values()) <= 0:
            break
        pair = min(gains, key=lambda pair: (-gains[pair], pair))
        cuts = tries[pair]
        if joined(*pair) not in pieces:
            pieces.append(joined(*pair))
    return pieces


@given(texts, st.integers(11, 60))
def test_joins_are_those_of_counting_anew(counts, size):
    got = WordPiece.train(counts, size).vocabulary.tokens[len(SPECIAL) :]
    assert list(got) == naive(counts, size)


def test_stops_where_no_join_raises_the_likelihood():
    tokens = WordPiece.train({"bbbb": 1, "b": 1}, 60).vocabulary.tokens
    assert tokens[len(SPECIAL) :] == ("##b", "b")


@given(texts, st.integers(11, 25))
def test_pieces_of_a_word_make_the_word(counts, size):
    model = WordPiece.train(counts, size)
    for word in counts:
        assert model.text(model.cut(word)) == word
    text = " ".join(counts)
    assert model.text(model.tokens(text)) == text


@given(texts, st.integers(11, 25), st.text("abc", min_size=1, max_size=8))
def test_each_piece_is_the_longest_that_fits(counts, size, word):
    model = WordPiece.train(counts, size)
    cut, at = model.cut(word), 0
    if cut == ["[UNK]"]:
        return
    for piece in cut:
        before = "##" if at else ""
        longer = range(at + len(piece.removeprefix("##")) + 1, len(word) + 1)
        for end in longer:
            assert before + word[at:end] not in model.vocabulary
        at += len(piece.removeprefix("##"))


def test_by_hand():
    """To join u and ##n, 9 of 10 pieces, leaves ##n only where a word is sun."""
    model = WordPiece.train({"un": 4, "sun": 1}, 10)
    assert model.vocabulary.tokens[5:] == ("##n", "##u", "s", "u", "un")
    assert model.cut("sun") == ["s", "##u", "##n"]
    assert model.cut("un") == ["un"]
    assert model.cut("xun") == ["[UNK]"]
    assert words("In the beginning, God") == ["in", "the", "beginning", ",", "god"]


def test_unknown_words_are_one_token():
    model = WordPiece(["a", "##b"])
    assert model.tokens("ab ax") == ["a", "##b", "[UNK]"]
    assert model.vocabulary.encode(["a", "[MASK]", "zzz"]).tolist() == [5, 4, 1]


def test_refusals():
    with pytest.raises(ValueError, match="counts must have a word"):
        WordPiece.train({}, 10)
    with pytest.raises(ValueError, match="size must be a whole number from 7"):
        WordPiece.train({"ab": 1}, 6)
    with pytest.raises(ValueError, match=re.escape("counts['ab'] must be")):
        WordPiece.train({"ab": 0}, 10)
    with pytest.raises(ValueError, match="word must have a letter"):
        WordPiece.train({"": 1}, 10)
