"""WordPiece: rare words in pieces, frequent ones whole."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from typing import TypeAlias

from dlcore.checks import check, check_whole
from dlcore.recurrence.vocabulary import Vocabulary

__all__ = [
    "CLASS",
    "INSIDE",
    "MASK",
    "PAD",
    "SEPARATOR",
    "SPECIAL",
    "UNKNOWN",
    "WordPiece",
    "joined",
    "spelled",
    "words",
]

#: Tokens that are no words: padding, unknown, class, separator and mask.
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = SPECIAL = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)
#: What stands before a piece that does not begin a word.
INSIDE = "##"

Pair: TypeAlias = tuple[str, str]


def words(text: str) -> list[str]:
    """Split a text into lower-case words; a punctuation mark is a word of its own.

    Example:
        >>> words("The sea, the sky.")
        ['the', 'sea', ',', 'the', 'sky', '.']
    """
    return re.findall(r"\w+|[^\w\s]", text.lower())


def spelled(word: str) -> list[str]:
    """Split a word into letters, as WordPiece writes them.

    Example:
        >>> spelled("sea")
        ['s', '##e', '##a']
    """
    check(len(word) > 0, "spelled: word", "have a letter", repr(word))
    return [word[0], *(INSIDE + letter for letter in word[1:])]


def joined(first: str, second: str) -> str:
    """Join two neighbouring pieces into one.

    Example:
        >>> joined("s", "##ea"), joined("##e", "##a")
        ('sea', '##ea')
    """
    return first + second.removeprefix(INSIDE)


class WordPiece:
    """A tokenizer that cuts words into pieces (Wu et al. 2016; Devlin et al. 2019).

    Args:
        pieces: those that begin a word as they are, others after ``##``.

    Attributes:
        vocabulary: special tokens first, then the pieces.

    Example:
        >>> pieces = WordPiece(["sea", "s", "##s", "##ide"])
        >>> pieces.tokens("Seas, seaside")
        ['sea', '##s', '[UNK]', 'sea', '##s', '##ide']
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self.vocabulary = Vocabulary([*SPECIAL, *pieces], unknown=UNKNOWN)
        self._longest = max(map(len, self.vocabulary.tokens))

    @classmethod
    def train(cls, counts: Mapping[str, int], size: int) -> "WordPiece":
        r"""Learn pieces from the words of a text.

        At first all pieces are letters. Again and again the pair of neighbours is joined
        that raises the likelihood of the text the most, if its pieces are drawn one by one
        with their shares (Schuster and Nakajima 2012). With :math:`\varphi(n) = n \log n`
        the logarithm of this likelihood is

        .. math:: \ell = \sum_a n_a \log \frac{n_a}{N} = \sum_a \varphi(n_a) - \varphi(N)

        for counts :math:`n_a` with the sum :math:`N`. It ends when the vocabulary is full,
        or no pair raises it. Of equals the first in order of letters is joined.

        Args:
            counts: how often each word comes.
            size: of the vocabulary, special tokens counted.
        """
        check(len(counts) > 0, "WordPiece.train: counts", "have a word", 0)
        for word, n in counts.items():
            check_whole(f"WordPiece.train: counts[{word!r}]", n, 1)
        table = _Table(counts)
        pieces = sorted(table.singles)
        least = len(SPECIAL) + len(pieces)
        check_whole("WordPiece.train: size", size, least)
        while len(pieces) < size - len(SPECIAL):
            pair = table.best()
            if pair is None:
                break
            table.join(pair)
            new = joined(*pair)
            if new not in pieces:
                pieces.append(new)
        return cls(pieces)

    def cut(self, word: str) -> list[str]:
        """Return the pieces of a word: each time the longest that fits, from the left.

        A word of which some part fits no piece is unknown as a whole.
        """
        pieces, start = [], 0
        while start < len(word):
            before = INSIDE if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                if before + word[start:end] in self.vocabulary:
                    pieces.append(before + word[start:end])
                    start = end
                    break
            else:
                return [UNKNOWN]
        return pieces

    def tokens(self, text: str) -> list[str]:
        """Return the pieces of all words of a text."""
        return [piece for word in words(text) for piece in self.cut(word)]

    def text(self, tokens: Iterable[str]) -> str:
        """Put pieces together again, with a space between words."""
        return " ".join(tokens).replace(f" {INSIDE}", "")


class _Table:
    """How often pieces and pairs of neighbours come in the words, kept while pairs join.

    ``where`` and ``around`` have the words and the pairs of all times: those in which a pair
    or a piece no longer comes stay, and change nothing.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        self.words = {word: spelled(word) for word in counts}
        self.singles: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.total = 0
        self.where: defaultdict[Pair, set[str]] = defaultdict(set)
        self.around: defaultdict[str, set[Pair]] = defaultdict(set)
        for word in counts:
            self._count(word, +1)
        self.queue = [(-self.gain(pair), pair) for pair in self.pairs]
        heapify(self.queue)

    def best(self) -> Pair | None:
        """Return the pair with the largest gain; None if no pair has one.

        A join changes the gains of pairs with its pieces, which :meth:`join` queues again.
        All others only fall, because :math:`N` does: a number in the queue is never too
        small, and the first that is still right is the largest.
        """
        while self.queue:
            queued, pair = self.queue[0]
            if pair not in self.pairs:
                heappop(self.queue)
            elif (gain := self.gain(pair)) == -queued:
                return pair if gain > 0 else None
            else:
                heapreplace(self.queue, (-gain, pair))
        return None

    def gain(self, pair: Pair) -> float:
        """Return by how much the logarithm of the likelihood grows if a pair is joined."""
        a, b = pair
        n, N = self.pairs[pair], self.total
        grown = _phi(n) - _phi(N - n) + _phi(N)
        if a == b:
            grown += _phi(self.singles[a] - 2 * n) - _phi(self.singles[a])
        else:
            for piece in pair:
                grown += _phi(self.singles[piece] - n)
                grown -= _phi(self.singles[piece])
        return round(grown, 6)  # so that ties are ties

    def join(self, pair: Pair) -> None:
        """Join a pair wherever it comes; of three equal pieces the first two."""
        for word in list(self.where[pair]):
            self._count(word, -1)
            old, new = self.words[word], []
            while old:
                fits = tuple(old[:2]) == pair
                new.append(joined(*pair) if fits else old[0])
                old = old[2:] if fits else old[1:]
            self.words[word] = new
            self._count(word, +1)
        for piece in {*pair, joined(*pair)}:
            for other in self.around[piece] & self.pairs.keys():
                heappush(self.queue, (-self.gain(other), other))

    def _count(self, word: str, sign: int) -> None:
        pieces, n = self.words[word], sign * self.counts[word]
        self.total += n * len(pieces)
        for piece in pieces:
            self.singles[piece] += n
        for pair in _disjoint_pairs(pieces):
            self.pairs[pair] += n
            if self.pairs[pair] == 0:
                del self.pairs[pair]
            self.where[pair].add(word)
            for piece in pair:
                self.around[piece].add(pair)


def _disjoint_pairs(pieces: list[str]) -> Iterator[Pair]:
    """Yield the pairs of neighbours; of three equal pieces the first two only."""
    last = None
    for pair in pairwise(pieces):
        overlaps = pair == last and pair[0] == pair[1]
        last = None if overlaps else pair
        if not overlaps:
            yield pair


def _phi(n: int) -> float:
    return n * math.log(n) if n else 0.0
