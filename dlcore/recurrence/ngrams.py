r"""Markov chains of order k: the next token depends on the last k, and is counted.

Sequences are rows of whole numbers below C. The number C itself is the *border*: k of
them stand before a sequence, so that its first tokens have a context too, and one behind
it says that it has ended.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_between, check_whole

__all__ = ["Counts", "Interpolated", "Markov"]


class Counts(NamedTuple):
    """A table of counts with sorted keys; a key that is absent has the count 0.

    Attributes:
        keys: in order.
        values: of the keys, a row for each kind of count.

    Example:
        >>> Counts(np.array([2, 5]), np.array([10, 20])).of(np.array([5, 3])).tolist()
        [20, 0]
    """

    keys: Int[ndarray, "n"]
    values: Int[ndarray, "*r n"]

    def of(self, keys: Int[ndarray, "*t"]) -> Int[ndarray, "..."]:
        """Return the numbers of keys, 0 for one that is not there."""
        if len(self.keys) == 0:
            return np.zeros(self.values.shape[:-1] + np.shape(keys), int)
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.values[..., at], 0)


class Markov:
    r"""A Markov chain of order k, estimated from counts.

    To every count :math:`\alpha` is added.

    .. math:: p(x \mid c) = \frac{N(c, x) + \alpha}{N(c) + \alpha m}

    :math:`N(c, x)` is how often the context :math:`c`, the last k tokens, was followed by
    :math:`x`, :math:`N(c)` how often it was followed by anything, and :math:`m` the number
    of tokens that may come next. With :math:`\alpha = 0` this is maximum likelihood, and a
    context that was never seen is refused.

    Equals ``sklearn.feature_extraction.text.CountVectorizer`` in its counts.

    Args:
        order: k, how many tokens are looked at.
        tokens: C, how many there are without the border.
        ends: whether the border is a token that may come next; if not, sequences go on as
            long as one lets them.
        alpha: what is added to each count.

    Example:
        >>> chain = Markov(1, 2).fit([[0, 1, 0]])
        >>> chain.next([0]).tolist()  # after 0 came 1 once, and the end once
        [0.0, 0.5, 0.5]
    """

    def __init__(
        self, order: int, tokens: int, ends: bool = True, alpha: float = 0.0
    ) -> None:
        who = type(self).__name__
        check_whole(f"{who}: order", order, 0)
        check_whole(f"{who}: tokens", tokens, 1)
        few = (int(tokens) + 1) ** (int(order) + 1) < 2**63
        rule = f"have (tokens + 1)^(order + 1) < 2^63 with {tokens} tokens"
        check(few, f"{who}: order", rule, order)
        check_between(f"{who}: alpha", alpha, 0, inf, "[)")
        self.order, self.tokens, self.ends, self.alpha = order, tokens, ends, alpha
        self.outcomes = tokens + int(ends)
        self.fit([])

    @property
    def parameters(self) -> int:
        """Free numbers: for each context that can come, all outcomes but one.

        Contexts are those of k tokens, and at the start of a sequence the shorter ones.
        """
        contexts = sum(self.tokens**j for j in range(self.order + 1))
        return contexts * (self.outcomes - 1)

    def fit(self, sequences: Iterable[Sequence[int]]) -> "Markov":
        """Count; what was counted before is forgotten."""
        row, at = self._row(sequences)
        self._joint, self._alone = [], []
        for j in range(self.order + 1):  # N(c, x); N(c) and U(c) of j tokens c
            keys, n = np.unique(self._keys(row, at, j + 1), return_counts=True)
            c, first = np.unique(keys // (self.tokens + 1), return_index=True)
            total = np.add.reduceat(n, first) if len(n) else n
            self._joint.append(Counts(keys, n))
            kinds = np.diff(np.r_[first, len(n)])
            self._alone.append(Counts(c, np.stack([total, kinds])))
        return self

    def count(self, context: Sequence[int], token: int) -> int:
        """Return N(c, x): how often these tokens, at most k, were followed by this one."""
        j = len(context)
        check(j <= self.order, "count: context", f"have at most {self.order}", j)
        key = np.array(self._key([*context, token]))
        return int(self._joint[j].of(key))

    def next(self, before: Sequence[int] = ()) -> Float[ndarray, "m"]:
        """Return the probabilities of what comes next; the last is that of the end."""
        self._check_tokens(before)
        padded = [self.tokens] * self.order + [*before]
        context = padded[len(padded) - self.order :]
        contexts = [
            np.array([self._key(context[self.order - j :])])
            for j in range(self.order + 1)
        ]
        p = self._probabilities(contexts, np.arange(self.outcomes))
        what, known = f"{type(self).__name__}: the context", not np.isnan(p).any()
        check(known, what, "have been seen, if alpha is 0", context)
        return p

    def log_probabilities(
        self, sequences: Iterable[Sequence[int]]
    ) -> Float[ndarray, "t"]:
        """Return the logarithm for every token given those before it, in one row.

        With the ends of the sequences. It is minus infinity where a token never followed
        its context, or the context was never seen.
        """
        row, at = self._row(sequences)
        contexts = [self._keys(row, at - 1, j) for j in range(self.order + 1)]
        p = self._probabilities(contexts, row[at])
        with np.errstate(divide="ignore"):
            return np.log(np.nan_to_num(p))

    def _probabilities(
        self, contexts: list[Int[ndarray, "_"]], x: Int[ndarray, "t"]
    ) -> Float[ndarray, "t"]:
        """Return p(x|c); contexts have their last 0, ..., k tokens as keys."""
        k, c = self.order, contexts[-1]
        joint = self._joint[k].of(c * (self.tokens + 1) + x)
        with np.errstate(invalid="ignore"):
            return (joint + self.alpha) / (
                self._alone[k].of(c)[0] + self.alpha * self.outcomes
            )

    def log_prefix(self, prefix: Sequence[int]) -> float:
        """Return the logarithm of the probability that a sequence begins like this."""
        self._check_tokens(prefix)
        total = 0.0
        for t, token in enumerate(prefix):
            p = self.next(prefix[:t])[token]
            if p == 0:
                return -np.inf
            total += float(np.log(p))
        return total

    def log_probability(self, sequence: Sequence[int]) -> float:
        """Return the logarithm of the probability of a sequence, with its end."""
        hint = "log_prefix has the probability of a beginning."
        check(self.ends, "log_probability: the chain", "end", "ends=False", hint)
        total = self.log_prefix(sequence)
        end = self.next(sequence)[-1] if total > -np.inf else 0.0
        return total + float(np.log(end)) if end > 0 else -np.inf

    def sample(
        self, rng: Generator, before: Sequence[int] = (), longest: int = 1000
    ) -> list[int]:
        """Draw what comes behind ``before``, to the end or to ``longest`` tokens."""
        check_whole("sample: longest", longest, 0)
        drawn: list[int] = []
        while len(drawn) < longest:
            p = self.next([*before, *drawn]).cumsum()
            token = int(np.searchsorted(p, rng.random() * p[-1], side="right"))
            if token == self.tokens:
                break
            drawn.append(token)
        return drawn

    def _row(
        self, sequences: Iterable[Sequence[int]]
    ) -> tuple[Int[ndarray, "n"], Int[ndarray, "t"]]:
        """Put sequences in one row, with borders, and say where the tokens stand."""
        parts, places, here = [np.zeros(0, int)], [np.zeros(0, int)], 0
        for sequence in sequences:
            self._check_tokens(sequence)
            part = np.full(self.order + len(sequence) + self.ends, self.tokens)
            part[self.order : self.order + len(sequence)] = sequence
            parts.append(part)
            places.append(here + np.arange(self.order, len(part)))
            here += len(part)
        return np.concatenate(parts), np.concatenate(places)

    def _keys(
        self, row: Int[ndarray, "n"], at: Int[ndarray, "t"], j: int
    ) -> Int[ndarray, "t"]:
        """Return the j tokens that end at each place, as one number."""
        keys = np.zeros(len(at), int)
        for back in range(j - 1, -1, -1):
            keys = keys * (self.tokens + 1) + row[at - back]
        return keys

    def _key(self, tokens: Sequence[int]) -> int:
        """Return some tokens as one number."""
        key = 0
        for token in tokens:
            key = key * (self.tokens + 1) + int(token)
        return key

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        """Refuse what is no row of tokens."""
        row = np.asarray(tokens)
        ok = row.ndim == 1 and (row.size == 0 or row.dtype.kind in "iu")
        ok = ok and bool(((row >= 0) & (row < self.tokens)).all())
        rule = f"be a row of whole numbers from 0 to {self.tokens - 1}"
        check(ok, f"{type(self).__name__}: a sequence", rule, row)


class Interpolated(Markov):
    r"""A Markov chain that mixes in shorter contexts where counts are few.

    Absolute discounting (Ney, Essen, Kneser 1994): with :math:`U(c)` the number of
    different tokens that followed :math:`c`, and :math:`c'` the context without its first
    token,

    .. math::
        p(x \mid c) = \frac{\max(N(c, x) - d, 0) + d\, U(c)\, p(x \mid c')}{N(c)},

    :math:`p(x \mid c) = p(x \mid c')` if :math:`c` was never seen, and :math:`1/m` below
    the empty context.

    Args:
        order: k.
        tokens: C.
        ends: as above.
        discount: :math:`d`, between 0 and 1, what is taken from each count.

    Example:
        >>> chain = Interpolated(1, 2, discount=0.5).fit([[0, 1, 0]])
        >>> chain.next([0]).tolist()
        [0.25, 0.375, 0.375]
    """

    def __init__(
        self, order: int, tokens: int, ends: bool = True, discount: float = 0.75
    ) -> None:
        super().__init__(order, tokens, ends)
        check_between("Interpolated: discount", discount, 0, 1, "(]")
        self.discount = discount

    def by_order(self, sequences: Iterable[Sequence[int]]) -> Float[ndarray, "k t"]:
        """Return the log-probabilities of chains of all orders up to k, a row for each.

        All have the same counts, so this takes no longer than the last row alone, which is
        that of :meth:`log_probabilities`.
        """
        row, at = self._row(sequences)
        contexts = [self._keys(row, at - 1, j) for j in range(self.order + 1)]
        return np.log(self._mixed(contexts, row[at]))

    def _probabilities(
        self, contexts: list[Int[ndarray, "_"]], x: Int[ndarray, "t"]
    ) -> Float[ndarray, "t"]:
        return self._mixed(contexts, x)[-1]

    def _mixed(
        self, contexts: list[Int[ndarray, "_"]], x: Int[ndarray, "t"]
    ) -> Float[ndarray, "k t"]:
        """Return p(x|c) for the last 0, ..., k tokens of c, each from the one before."""
        d, p, rows = self.discount, np.full(len(x), 1 / self.outcomes), []
        for j, c in enumerate(contexts):
            joint = self._joint[j].of(c * (self.tokens + 1) + x)
            total, kinds = self._alone[j].of(c)
            rest = np.maximum(joint - d, 0) + d * kinds * p
            p = np.where(total > 0, rest / np.maximum(total, 1), p)
            rows.append(p)
        return np.stack(rows)
