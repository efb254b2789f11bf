"""Tests of dlcore.recurrence.vocabulary."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from dlcore.recurrence.vocabulary import Vocabulary

TEXT = [
    "in",
    "the",
    "beginning",
    "god",
    "created",
    "the",
    "heaven",
    "and",
    "the",
    "earth",
]


def test_by_hand():
    words = Vocabulary.of(TEXT, special=["<end>"])
    assert words.tokens[:3] == ("<end>", "the", "and")
    assert words.encode(["the", "earth", "<end>"]).tolist() == [1, 5, 0]
    assert "sea" not in words
    assert "earth" in words
    assert Vocabulary.of(TEXT, least=2).tokens == ("the",)
    assert Vocabulary("abc").encode("cab").tolist() == [2, 0, 1]


def test_same_words_as_scikit_learn():
    theirs = CountVectorizer(token_pattern=r"\S+").fit([" ".join(TEXT)])
    ours = Vocabulary.of(TEXT)
    assert sorted(ours.tokens) == list(theirs.get_feature_names_out())


@given(st.lists(st.text(max_size=2), min_size=1, max_size=30))
def test_decode_takes_encode_back(text):
    words = Vocabulary.of(text)
    assert words.decode(words.encode(text)) == text
    counts = [text.count(token) for token in words.tokens]
    assert counts == sorted(counts, reverse=True)


def test_special_tokens_come_first_and_once():
    words = Vocabulary.of(["b", "a", "<pad>", "b"], special=["<pad>"])
    assert words.tokens == ("<pad>", "b", "a")


def test_empty_text_has_no_indices():
    indices = Vocabulary("a").encode([])
    assert indices.shape == (0,)
    assert indices.dtype == torch.long
    assert Vocabulary("a").decode(indices) == []


def test_unknown_tokens():
    with pytest.raises(ValueError, match="one of its 3 tokens; got 'd'"):
        Vocabulary("abc").encode("abd")
    assert Vocabulary("abc?", unknown="?").encode("abd").tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="unknown must be one of the tokens"):
        Vocabulary("abc", unknown="?")


def test_refusals(unchecked):
    with pytest.raises(ValueError, match="differ; got 'a' twice"):
        Vocabulary("aba")
    with pytest.raises(ValueError, match="at least one member"):
        Vocabulary([])
    with pytest.raises(ValueError, match="least must be"):
        Vocabulary.of("aba", least=0)
    with pytest.raises(ValueError, match="less than the number of tokens 3"):
        Vocabulary("abc").decode([3])
    with pytest.raises(ValueError, match="index must"):
        Vocabulary("abc").decode([-1])
    with pytest.raises(ValueError, match="index must"):
        Vocabulary("abc").decode(torch.tensor([0.5]))
