"""Tokens, words or characters, as whole numbers, and back."""

from collections import Counter
from collections.abc import Iterable, Sequence

from jaxtyping import Int64

from dlcore._torch import Tensor, torch
from dlcore.checks import check, check_whole

__all__ = ["Vocabulary", "check_indices", "check_tokens"]


class Vocabulary:
    """A list of tokens, which maps each token to its place in the list and back.

    Characters are tokens too: ``Vocabulary("abc").encode("cab")`` is ``[2, 0, 1]``.

    Args:
        tokens: each of them once.
        unknown: one of them, to which :meth:`encode` maps every token that is not in the
            list; without it such a token is refused.

    Attributes:
        tokens: the list.

    Example:
        >>> letters = Vocabulary.of("banana")
        >>> letters.tokens, letters.encode("nab").tolist()
        (('a', 'n', 'b'), [1, 0, 2])
    """

    def __init__(self, tokens: Iterable[str], unknown: str | None = None) -> None:
        self.tokens = tuple(tokens)
        self.unknown = unknown
        self._index = {token: i for i, token in enumerate(self.tokens)}
        check(len(self.tokens) > 0, "Vocabulary: tokens", "have at least one member", 0)
        if len(self._index) < len(self.tokens):
            twice = Counter(self.tokens).most_common(1)[0][0]
            check(False, "Vocabulary: tokens", "differ", f"{twice!r} twice or more")
        ok = unknown is None or unknown in self._index
        check(ok, "Vocabulary: unknown", "be one of the tokens", repr(unknown))

    @classmethod
    def of(
        cls,
        text: Iterable[str],
        least: int = 1,
        special: Sequence[str] = (),
        unknown: str | None = None,
    ) -> "Vocabulary":
        """Collect the tokens of a text, the most frequent first, ties in order of letters.

        Args:
            text: tokens in a row.
            least: a token that comes less often is left out.
            special: tokens that come before all others, such as a padding or an end.
            unknown: as above.
        """
        check_whole("Vocabulary.of: least", least, 1)
        counts = Counter(text)
        for token in special:
            counts.pop(token, None)
        common = [token for token in counts if counts[token] >= least]
        common.sort(key=lambda token: (-counts[token], token))
        return cls([*special, *common], unknown)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        """Tell whether a token is in the list."""
        return token in self._index

    def __getitem__(self, token: str) -> int:
        """Return the index of a token."""
        if token not in self and self.unknown is not None:
            token = self.unknown
        rule = f"be one of its {len(self)} tokens"
        hint = "A vocabulary with unknown= takes every token."
        check(token in self, "Vocabulary: token", rule, repr(token), hint)
        return self._index[token]

    def encode(self, text: Iterable[str]) -> Int64[Tensor, "T"]:
        """Return the indices of tokens in a row."""
        return torch.tensor([self[token] for token in text], dtype=torch.long)

    def decode(self, indices: Int64[Tensor, "T"] | Iterable[int]) -> list[str]:
        """Return the tokens of indices; :meth:`encode` takes them back."""
        places = torch.as_tensor(indices).tolist()
        rule = f"be less than the number of tokens {len(self)}"
        for place in places:
            check_whole("Vocabulary.decode: index", place, 0)
            check(place < len(self), "Vocabulary.decode: index", rule, place)
        return [self.tokens[place] for place in places]


def check_indices(what: str, x: Tensor, count: int) -> None:
    """Refuse tensors that are not indices into a table of ``count`` rows.

    Example:
        >>> check_indices("tokens", torch.tensor([0, 3]), 3)
        Traceback (most recent call last):
            ...
        ValueError: tokens must lie between 0 and 2, the rows of the table; got 3.
    """
    check(x.dtype == torch.long, what, "be whole numbers (torch.long)", x.dtype)
    if x.numel():
        low, high = int(x.min()), int(x.max())
        worst = low if low < 0 else high
        must = f"lie between 0 and {count - 1}, the rows of the table"
        check(low >= 0 and high < count, what, must, worst)


def check_tokens(what: str, x: Tensor, count: int, rows: int | None = None) -> None:
    """Refuse tensors that are not a batch of sequences of tokens.

    Args:
        what: name of the tensor, for the message.
        x: the sequences, as rows.
        count: number of different tokens.
        rows: how many sequences there should be; without it, any number.

    Example:
        >>> check_tokens("x", torch.tensor([0, 1]), 3)
        Traceback (most recent call last):
            ...
        ValueError: x must have the axes (B, T) with T > 0; got shape (2,).
    """
    ok = x.ndim == 2 and x.shape[1] > 0 and rows in (None, len(x))
    must = f"have the axes ({'B' if rows is None else rows}, T) with T > 0"
    check(ok, what, must, f"shape {tuple(x.shape)}")
    check_indices(what, x, count)
