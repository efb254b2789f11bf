"""An encoder that learns from holes in a text, and heads to put on it (Devlin et al. 2019)."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Bool, Float, Int, Int64

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_between, check_whole
from dlcore.recurrence.embedding import Embedding
from dlcore.recurrence.recurrent import length_mask
from dlcore.recurrence.vocabulary import check_tokens
from dlcore.transformers.language_model import LanguageModel
from dlcore.transformers.linear import Linear
from dlcore.transformers.wordpiece import CLASS, SEPARATOR

__all__ = [
    "BERT",
    "IGNORED",
    "ClassHead",
    "MaskedHead",
    "Packed",
    "SpanHead",
    "best_span",
    "hide",
    "pack",
]

#: Target of a token that is not to be predicted; as in PyTorch.
IGNORED = -100


class Packed(NamedTuple):
    """One or two texts as one sequence of tokens, with the segment of each token.

    Attributes:
        tokens: ``[CLS] first [SEP]``, and ``second [SEP]`` if there is one.
        segments: 0 for the first part, 1 for the second.

    Example:
        >>> pack(["sea"], ["sky", "."]).segments
        [0, 0, 0, 1, 1, 1]
    """

    tokens: list[str]
    segments: list[int]


def pack(first: Sequence[str], second: Sequence[str] | None = None) -> Packed:
    """Join the tokens of one or two texts, with ``[CLS]`` before and ``[SEP]`` behind.

    Example:
        >>> pack(["sea"], ["sky", "."]).tokens
        ['[CLS]', 'sea', '[SEP]', 'sky', '.', '[SEP]']
    """
    one = [CLASS, *first, SEPARATOR]
    two = [] if second is None else [*second, SEPARATOR]
    return Packed(one + two, [0] * len(one) + [1] * len(two))


def hide(
    x: Int64[Tensor, "B T"],
    may: Bool[Tensor, "B T"],
    mask: int,
    words: tuple[int, int],
    generator: Generator,
    rate: float = 0.15,
    masked: float = 0.8,
    swapped: float = 0.1,
) -> tuple[Int64[Tensor, "B T"], Int64[Tensor, "B T"]]:
    """Choose the tokens of a masked language model to be predicted, and hide most.

    Each token that may be chosen is chosen with the probability ``rate``. A chosen token
    becomes the mask, or another token at random, or stays as it is.

    Args:
        x: tokens.
        may: True where a token may be chosen: no padding, no special token.
        mask: the token that stands for a hole.
        words: the first token to draw from, and the one behind the last.
        generator: source of the choices.
        rate: share of the chosen.
        masked: share of the chosen that become the mask.
        swapped: share of the chosen that become a token at random.

    Returns:
        What the network sees, and what it has to say: the tokens at the chosen places,
        :data:`IGNORED` elsewhere.

    Example:
        >>> x, may = torch.tensor([[5, 6, 7]]), torch.tensor([[False, True, True]])
        >>> options = {"rate": 1.0, "masked": 1.0, "swapped": 0.0}
        >>> seen, said = hide(x, may, 9, (5, 8), torch.Generator(), **options)
        >>> seen.tolist(), said.tolist()
        ([[5, 9, 9]], [[-100, 6, 7]])
    """
    check_between("hide: rate", rate, 0, 1)
    ok = min(masked, swapped) >= 0 and masked + swapped <= 1 + 1e-9
    rule = "not be negative, with a sum of at most 1"
    check(ok, "hide: masked and swapped", rule, (masked, swapped))
    rule = f"have the shape of x, {tuple(x.shape)}, and truth values"
    ok = may.shape == x.shape and may.dtype == torch.bool
    check(ok, "hide: may", rule, f"{may.dtype} of shape {tuple(may.shape)}")
    check(words[0] < words[1], "hide: words", "be a range", words)
    chosen = may & (torch.rand(x.shape, generator=generator) < rate)
    kind = torch.rand(x.shape, generator=generator)
    others = torch.randint(*words, x.shape, generator=generator)
    other = chosen & (kind >= masked) & (kind < masked + swapped)
    seen = x.where(~(chosen & (kind < masked)), mask)
    seen = seen.where(~other, others)
    return seen, x.where(chosen, IGNORED)


class BERT(LanguageModel):
    r"""A bidirectional transformer encoder of one or two texts (Devlin et al. 2019).

    A token enters as :math:`e + p_t + s`: itself, its place, and its part of the pair, all
    learned. Every token may look at every other one, before and after it. Norms stand
    first; in the paper they stand after. Arguments are those of
    :class:`~dlcore.transformers.language_model.LanguageModel`.

    Example:
        >>> net = BERT(9, 4, d_model=8, num_heads=2, num_layers=1)
        >>> x = torch.tensor([[1, 2, 0]])
        >>> short = net(x, lengths=torch.tensor([2]))[:, :2]
        >>> torch.allclose(short, net(x[:, :2]), atol=1e-5)  # padding is not looked at
        True
    """

    def extend(self, generator: Generator | None) -> None:
        """Add a vector for each part of a pair."""
        D = self.d_model
        self.segments = Embedding(2, D, generator, std=D**-0.5)

    def forward(
        self,
        x: Int64[Tensor, "B T"],
        segments: Int64[Tensor, "B T"] | None = None,
        lengths: Int[Tensor, "B"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return a vector for each token that depends on all of them.

        Args:
            x: tokens.
            segments: the part of the pair, 0 or 1; without it, all are 0.
            lengths: of the rows; what stands behind the end is not looked at.
        """
        X = self.enter(x)
        if segments is None:
            segments = torch.zeros_like(x)
        check_tokens("BERT: segments", segments, 2, len(x))
        T = x.shape[1]
        mask = None if lengths is None else length_mask(lengths, T, "BERT")[:, None]
        states: Tensor = self.stack(self.dropout(X + self.segments(segments)), mask)
        return states


class MaskedHead(nn.Module):
    r"""The head of a masked language model: logits of the word at each position.

    .. math:: E\, \operatorname{norm}(\varphi(Wx + b)) + c

    Args:
        bert: the encoder, whose embeddings :math:`E` are used again.
        generator: source of the weights.

    Example:
        >>> bert = BERT(9, 4, d_model=8, num_heads=2, num_layers=1)
        >>> MaskedHead(bert).E is bert.embed.E
        True
    """

    def __init__(self, bert: BERT, generator: Generator | None = None) -> None:
        super().__init__()
        D = bert.d_model
        first = Linear(D, D, generator=generator)
        self.change = nn.Sequential(first, nn.GELU(), nn.LayerNorm(D))
        self.E = bert.embed.E
        self.c = nn.Parameter(torch.zeros(len(self.E)))

    def forward(self, X: Float[Tensor, "*B D"]) -> Float[Tensor, "*B C"]:
        """Return scores for each state."""
        scores: Tensor = self.change(X) @ self.E.T + self.c
        return scores


class ClassHead(Linear):
    """Logits of the class of a text, from the state at its first token, ``[CLS]``.

    Next-sentence prediction, sentiment and other questions about a whole text differ only
    in their classes. To ask about each token, put a ``Linear`` on all states.

    Example:
        >>> head, X = ClassHead(1, 1, bias=False), torch.tensor([[[2.0], [7.0]]])
        >>> head.weight.data = torch.tensor([[3.0]])
        >>> head(X).tolist()
        [[6.0]]
    """

    def forward(self, X: Float[Tensor, "B T D"]) -> Float[Tensor, "B C"]:
        """Return scores for each text."""
        return super().forward(X[:, 0])


class SpanHead(Linear):
    """Logits of the start and of the end of an answer, at every token.

    Args:
        d_model: width of a state.
        generator: source of the weights.

    Example:
        >>> X, may = torch.ones(1, 2, 4), torch.tensor([[True, False]])
        >>> SpanHead(4)(X, may).isfinite().tolist()
        [[[True, True], [False, False]]]
    """

    def __init__(self, d_model: int, generator: Generator | None = None) -> None:
        super().__init__(d_model, 2, generator=generator)

    def forward(
        self, X: Float[Tensor, "B T D"], may: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T 2"]:
        """Return both scores, −∞ where no answer may stand."""
        scores = super().forward(X)
        if may is None:
            return scores
        return scores.masked_fill(~may[:, :, None], -torch.inf)


def best_span(
    scores: Float[Tensor, "B T 2"], longest: int | None = None
) -> Int64[Tensor, "B 2"]:
    r"""Return the start and end of the answer with the largest sum of logits.

    The start :math:`i` is not behind the end :math:`j`.

    Args:
        scores: of the start and of the end at every token.
        longest: tokens of an answer at most; without it, all lengths are allowed.

    Example:
        >>> start, end = torch.tensor([0.0, 5.0, 0.0]), torch.tensor([9.0, 1.0, 6.0])
        >>> best_span(torch.stack([start, end], dim=1)[None]).tolist()
        [[1, 2]]
    """
    T = scores.shape[1]
    if longest is not None:
        check_whole("best_span: longest", longest, 1)
    sums = scores[:, :, None, 0] + scores[:, None, :, 1]
    allowed = torch.ones(T, T, dtype=torch.bool).triu()
    if longest is not None:
        allowed &= ~torch.ones(T, T, dtype=torch.bool).triu(longest)
    at = sums.masked_fill(~allowed, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([at // T, at % T], dim=1)
