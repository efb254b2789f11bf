r"""From one sequence to another: an encoder reads, a decoder writes and may look back.

The encoder turns :math:`x_1, \dots, x_T` into states :math:`h_1, \dots, h_T`, from both
directions. The decoder writes :math:`y_1, y_2, \dots`, each with a context vector
:math:`c_i`: the weighted mean of the states with attention, and without it the thought
vector, the same for all :math:`i`. In masks, True means may look.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int, Int64

from dlcore._torch import Generator, Tensor, linear, nn, torch
from dlcore.checks import check, check_shape, check_sizes
from dlcore.recurrence.recurrent import (
    LSTM,
    Bidirectional,
    Recurrent,
    State,
    length_mask,
    uniform,
)
from dlcore.recurrence.vocabulary import check_tokens

__all__ = ["AdditiveAttention", "Memory", "Seq2Seq"]


class Memory(NamedTuple):
    """The states of an encoder that a decoder looks back at.

    Attributes:
        h: the states, 0 where the decoder may not look; without attention there is one
            place, and the thought vector stands in it.
        keys: the part :math:`U h_j` of the scores.
        mask: where it may look.

    Example:
        >>> h, mask = torch.ones(1, 2, 3), torch.tensor([[True, False]])
        >>> AdditiveAttention(2, 3, 4).remember(h, mask).h.tolist()
        [[[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]]
    """

    h: Float[Tensor, "B T H"]
    keys: Float[Tensor, "B T A"]
    mask: Bool[Tensor, "B T"]


class AdditiveAttention(nn.Module):
    r"""Additive attention of a decoder to an encoder (Bahdanau, Cho, Bengio 2015).

    .. math::
        e_{ij} &= v^\top \tanh(W s_{i-1} + U h_j) \\
        a_{ij} &= e^{e_{ij}} / \textstyle\sum_k e^{e_{ik}} \\
        c_i &= \textstyle\sum_j a_{ij} h_j

    The sums are over the places where the decoder may look.

    Args:
        queries: numbers :math:`s` has.
        states: numbers :math:`h_j` has.
        width: numbers inside the tanh.
        generator: source of the weights.

    Example:
        >>> attention = AdditiveAttention(1, 1, 4)
        >>> _ = attention.v.data.zero_()  # equal scores: the context is the mean
        >>> memory = attention.remember(torch.tensor([[[2.0], [4.0]]]))
        >>> attention(torch.ones(1, 1), memory)[0].item()
        3.0
    """

    def __init__(
        self, queries: int, states: int, width: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        check_sizes("AdditiveAttention", queries=queries, states=states, width=width)
        self.W = uniform(queries, (width, queries), generator)
        self.U = uniform(states, (width, states), generator)
        self.v = uniform(width, (width,), generator)

    def remember(
        self, h: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Memory:
        """Prepare states for all steps at once; what is masked is never looked at."""
        check_shape("AdditiveAttention: h", h, None, None, self.U.shape[1])
        if mask is None:
            mask = torch.ones(h.shape[:2], dtype=torch.bool, device=h.device)
        what, rule = "AdditiveAttention: mask", "have a place to look at in each row"
        check_shape(what, mask, *h.shape[:2])
        check(bool(mask.any(dim=1).all()), what, rule, mask.sum(dim=1).tolist())
        h = h.masked_fill(~mask[:, :, None], 0)
        return Memory(h, h @ self.U.T, mask)

    def forward(
        self, s: Float[Tensor, "B S"], memory: Memory
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B T"]]:
        """Return the context vectors and the weights; a memory of one row serves all s."""
        h, keys, mask = memory
        e = torch.tanh((s @ self.W.T)[:, None] + keys) @ self.v
        a = torch.softmax(e.masked_fill(~mask, -torch.inf), dim=1)
        return (a[:, None] @ h)[:, 0], a


class Seq2Seq(nn.Module):
    r"""A recurrent encoder and decoder, with or without attention.

    .. math::
        \vec h_j, \overleftarrow h_j &\text{ from both directions}, \quad
            h_j = (\vec h_j; \overleftarrow h_j) \\
        g &= (\vec h_T; \overleftarrow h_1), \quad s_0 = \tanh(G g + b) \\
        s_i &= F(s_{i-1}, (y_{i-1}; c_i)) \\
        o_i &= R\, (s_i; c_i) + d

    :math:`c_i` comes from :class:`AdditiveAttention`; without attention it is the thought
    vector :math:`g`, as in Cho et al. (2014).

    Args:
        sources: number of tokens that can be read.
        targets: number of tokens that can be written.
        hidden: numbers of a state, of each direction and of the decoder.
        width: numbers that stand for a token.
        attention: whether the decoder may look back.
        kind: the cell of encoder and decoder.
        generator: source of the weights.

    Example:
        >>> x, y = torch.tensor([[1, 2, 3]]), torch.tensor([[0, 4]])
        >>> scores, a = Seq2Seq(sources=5, targets=5, hidden=4)(x, y)
        >>> torch.allclose(a.sum(dim=2), torch.ones(1, 2))  # attention weights
        True
    """

    def __init__(
        self,
        sources: int,
        targets: int,
        hidden: int,
        width: int = 32,
        attention: bool = True,
        kind: type[Recurrent] = LSTM,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {"sources": sources, "targets": targets, "hidden": hidden}
        check_sizes("Seq2Seq", **sizes, width=width)
        both = 2 * hidden
        self.read = uniform(1, (sources, width), generator)
        self.encoder = Bidirectional(
            kind(width, hidden, generator=generator),
            kind(width, hidden, generator=generator),
        )
        self.write = uniform(1, (targets, width), generator)
        self.decoder = kind(width + both, hidden, generator=generator)
        self.attention = (
            AdditiveAttention(hidden, both, hidden, generator) if attention else None
        )
        self.G = uniform(both, (self.decoder.states * hidden, both), generator)
        self.b = nn.Parameter(torch.zeros(self.decoder.states * hidden))
        self.R = uniform(hidden + both, (targets, hidden + both), generator)
        self.d = nn.Parameter(torch.zeros(targets))

    def encode(
        self, x: Int64[Tensor, "B T"], lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
        """Return the states of all places and the thought vectors."""
        check_tokens("Seq2Seq: x", x, len(self.read))
        h, ends = self.encoder(self.read[x], lengths)
        thought = torch.cat([ends[0], ends[len(ends) // 2]], dim=1)
        return h, thought

    def begin(
        self, x: Int64[Tensor, "B T"], lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Tensor, ...]:
        """Read; return what :meth:`step` keeps: the memory, then the decoder's state."""
        h, g = self.encode(x, lengths)
        state = torch.tanh(g @ self.G.T + self.b)
        parts = state.chunk(self.decoder.states, dim=1)
        if self.attention is None:
            one = torch.ones(len(g), 1, dtype=torch.bool, device=g.device)
            return (*Memory(g[:, None], g[:, None], one), *parts)
        mask = None if lengths is None else length_mask(lengths, x.shape[1])
        return (*self.attention.remember(h, mask), *parts)

    def step(
        self, kept: tuple[Tensor, ...], y: Int64[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B C"], tuple[Tensor, ...]]:
        """Take the token before; return log probabilities of the next one, and the state."""
        h, keys, mask, *state = kept
        c = h[:, 0]
        if self.attention is not None:
            c, _ = self.attention(state[0], Memory(h, keys, mask))
        z = torch.cat([self.write[y], c], dim=1) @ self.decoder.V.T
        new = self.decoder.step(z + self.decoder.b, tuple(state))
        o = torch.cat([new[0], c], dim=1) @ self.R.T + self.d
        return torch.log_softmax(o, dim=1), (h, keys, mask, *new)

    def forward(
        self,
        x: Int64[Tensor, "B T"],
        y: Int64[Tensor, "_ K"],
        lengths: Int[Tensor, "B"] | None = None,
    ) -> tuple[Float[Tensor, "B K C"], Float[Tensor, "B K P"]]:
        """Return scores and weights where the tokens before are given: teacher forcing.

        Args:
            x: what to read.
            y: what was written before each step; its first column is the start token.
            lengths: of the rows of ``x``; without them, all are as long as ``x``.
        """
        check_tokens("Seq2Seq: y", y, len(self.write), len(x))
        h, keys, mask, *state = self.begin(x, lengths)
        s, c, a = self._write(self.write[y], tuple(state), Memory(h, keys, mask))
        return torch.cat([s, c], dim=2) @ self.R.T + self.d, a

    def _write(
        self, tokens: Float[Tensor, "B K W"], state: State, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return states, contexts and weights of all steps, given the tokens before."""
        if self.attention is None:  # the contexts are known beforehand
            c = memory.h.expand(-1, tokens.shape[1], -1)
            s, _ = self.decoder(torch.cat([tokens, c], dim=2), state=state)
            return s, c, memory.mask.to(s)[:, None].expand(-1, c.shape[1], -1)
        V_y, V_c = self.decoder.V.split([tokens.shape[2], memory.h.shape[2]], 1)
        steps = []
        for z in linear(tokens, V_y, self.decoder.b).unbind(dim=1):
            c, a = self.attention(state[0], memory)
            state = self.decoder.step(torch.addmm(z, c, V_c.T), state)
            steps.append((state[0], c, a))
        s, c, a = (torch.stack(p, dim=1) for p in zip(*steps, strict=True))
        return s, c, a
