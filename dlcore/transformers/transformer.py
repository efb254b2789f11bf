"""The transformer of 2017: an encoder that reads, and a decoder that writes."""

from jaxtyping import Bool, Float, Int, Int64

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_sizes
from dlcore.recurrence.embedding import Embedding
from dlcore.recurrence.recurrent import length_mask
from dlcore.recurrence.vocabulary import check_tokens
from dlcore.transformers.attention import causal_mask
from dlcore.transformers.blocks import Block, Cache, Stack
from dlcore.transformers.linear import Linear
from dlcore.transformers.positions import BASE, sinusoidal

__all__ = ["Transformer"]


class Transformer(nn.Module):
    r"""The encoder-decoder transformer of Vaswani et al. (2017).

    A token enters as :math:`\sqrt{D}\, e + p_t`, with its embedding and the encoding of its
    place (a learned one with the same factor as the embedding); the decoder sees the tokens
    written so far, and the memory of what was read.

    Equals ``torch.nn.Transformer`` between the embeddings and the linear map to logits.

    Args:
        sources: number of tokens that can be read.
        targets: number of tokens that can be written.
        d_model: width :math:`D` of a token.
        num_heads: of each attention.
        num_layers: of the encoder, and of the decoder.
        d_ff: hidden units at each place; without it, four times the width.
        norm_first: where the norms stand. If first, another one follows the last layer.
        dropout: probability of dropping, on the inputs and on what a sublayer adds.
        places: how many places there are, each with a learned vector, for both sides;
            without it they are sinusoidal, and there are as many as needed.
        base: the constant :math:`C` of the sinusoids.
        generator: source of the weights.

    Example:
        >>> net = Transformer(7, 5, d_model=8, num_heads=2, num_layers=1)
        >>> x, y = torch.tensor([[1, 2]]), torch.tensor([[0, 3]])
        >>> torch.allclose(net(x, y)[:, :1], net(x, y[:, :1]), atol=1e-5)  # no future
        True
    """

    def __init__(
        self,
        sources: int,
        targets: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int | None = None,
        norm_first: bool = True,
        dropout: float = 0.0,
        places: int | None = None,
        base: float = BASE,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {"sources": sources, "targets": targets, "d_model": d_model}
        check_sizes("Transformer", **sizes, num_layers=num_layers)
        self.d_model, self.base = d_model, base

        def table(count: int) -> Embedding:
            return Embedding(count, d_model, generator, std=d_model**-0.5)

        def stack(cross: bool) -> Stack:
            options = (d_ff, cross, norm_first, dropout, None, generator)
            return Stack(num_layers, lambda: Block(d_model, num_heads, *options))

        self.read, self.write = table(sources), table(targets)
        self.encoder, self.decoder = stack(cross=False), stack(cross=True)
        self.output = Linear(d_model, targets, generator=generator)
        self.dropout = nn.Dropout(dropout)
        # drawn last, so that the other weights do not depend on them
        self.places = None if places is None else table(places)

    def forward(
        self,
        x: Int64[Tensor, "B S"],
        y: Int64[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """Return scores where the tokens before are given, all at once.

        Args:
            x: what to read.
            y: what was written before each step; its first column is the start token.
            lengths: of the rows of ``x``; without them, all are as long as ``x``.
        """
        check_tokens("Transformer: y", y, len(self.write.E), len(x))
        memory, memory_mask = self.encode(x, lengths)
        Y, mask = self._enter(self.write, y), causal_mask(y.shape[1])
        Y = self.decoder(Y, mask, memory, memory_mask)
        scores: Tensor = self.output(Y)
        return scores

    def encode(
        self, x: Int64[Tensor, "B S"], lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B 1 S"] | None]:
        """Read; return the memory, and where it may be looked at."""
        check_tokens("Transformer: x", x, len(self.read.E))
        mask = None
        if lengths is not None:
            mask = length_mask(lengths, x.shape[1], "Transformer")[:, None]
        return self.encoder(self._enter(self.read, x), mask), mask

    def begin(
        self, x: Int64[Tensor, "B S"], lengths: Int[Tensor, "B"] | None = None
    ) -> Cache:
        """Read; return what :meth:`step` keeps: the past, the memory, where to look."""
        memory, mask = self.encode(x, lengths)
        if mask is None:
            mask = torch.ones(len(x), 1, x.shape[1], dtype=torch.bool)
        return (mask, *self.decoder.begin(len(x), memory))

    def step(
        self, cache: Cache, y: Int64[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B C"], Cache]:
        """Take the token before; return log probabilities of the next one, and the cache."""
        check_tokens("Transformer.step: y", y[:, None], len(self.write.E))
        mask, *kept = cache
        Y = self._enter(self.write, y[:, None], first=kept[0].shape[2])
        Y, new = self.decoder.step(Y, tuple(kept), mask)
        return torch.log_softmax(self.output(Y)[:, 0], dim=1), (mask, *new)

    def _enter(self, embed: Embedding, x: Tensor, first: int = 0) -> Tensor:
        t = torch.arange(first, first + x.shape[1])
        if self.places is None:
            p = sinusoidal(t, self.d_model, self.base).to(embed.E)
        else:
            most, last = len(self.places.E), first + x.shape[1]
            rule = f"have at most {most} places, one for each learned vector"
            check(last <= most, "Transformer: a text", rule, last)
            p = self.d_model**0.5 * self.places.E[first:last]
        entered: Tensor = self.dropout(self.d_model**0.5 * embed(x) + p)
        return entered
