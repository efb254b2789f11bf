"""The layers of transformers: attention around a stream of vectors, one for each token."""

from collections.abc import Callable
from typing import Any, TypeAlias

from jaxtyping import Bool, Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_sizes, check_whole
from dlcore.transformers.attention import Heads, MultiHeadAttention
from dlcore.transformers.linear import Linear

__all__ = ["Block", "Cache", "FeedForward", "KeysValues", "Stack", "Stream"]

#: The residual stream: a vector for each token, with the axes (B, T, D).
Stream: TypeAlias = Float[Tensor, "B T D"]
#: Keys and values of an attention, of all its heads.
KeysValues: TypeAlias = tuple[Heads, Heads]
#: What a model keeps while it writes: keys and values of all layers.
Cache: TypeAlias = tuple[Tensor, ...]


class FeedForward(nn.Sequential):
    r"""A network of two linear layers, applied to each token by itself.

    .. math:: W_2\, \varphi(W_1 x + b_1) + b_2

    Args:
        d_model: width of a token.
        d_ff: number of hidden units.
        phi: the activation function.
        generator: source of the weights.

    Example:
        >>> net = FeedForward(d_model=4, d_ff=16)
        >>> sum(p.numel() for p in net.parameters())  # 2 · 4 · 16 + 16 + 4
        148
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        phi: nn.Module | None = None,
        generator: Generator | None = None,
    ) -> None:
        check_sizes("FeedForward", d_model=d_model, d_ff=d_ff)
        super().__init__(
            Linear(d_model, d_ff, generator=generator),
            nn.ReLU() if phi is None else phi,
            Linear(d_ff, d_model, generator=generator),
        )


class Block(nn.Module):
    r"""A transformer layer: attention and a network, each with a shortcut and a norm.

    With the sublayers :math:`f`,

    .. math::
        x &\leftarrow \operatorname{norm}(x + f(x)) && \text{after (2017)} \\
        x &\leftarrow x + f(\operatorname{norm}(x)) && \text{first}

    The sublayers are self-attention, then, in a decoder, attention to a memory, then a
    network at every place.

    Equals ``torch.nn.TransformerEncoderLayer`` with the mask negated.
    Equals ``torch.nn.TransformerDecoderLayer`` with the masks negated, if
    ``cross=True``.

    Args:
        d_model: width of a token.
        num_heads: of each attention.
        d_ff: hidden units of the network; without it, four times the width.
        cross: whether there is a memory to look at.
        norm_first: where the norm stands.
        dropout: probability of dropping, on what a sublayer adds.
        phi: the activation function of the network.
        generator: source of the weights.

    Example:
        >>> block = Block(d_model=8, num_heads=2)
        >>> sum(p.numel() for p in block.parameters())  # 12 · 8² + 13 · 8
        872
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        cross: bool = False,
        norm_first: bool = True,
        dropout: float = 0.0,
        phi: nn.Module | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(d_model, num_heads, generator=generator)

        self.attention = attention()
        self.cross: Any = attention() if cross else None
        hidden = 4 * d_model if d_ff is None else d_ff
        self.feed_forward = FeedForward(d_model, hidden, phi, generator)
        self.norms = nn.ModuleList(
            nn.LayerNorm(d_model) for _ in range(3 if cross else 2)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        X: Stream,
        mask: Bool[Tensor, "*#B #T T"] | None = None,
        memory: Float[Tensor, "B S D"] | None = None,
        memory_mask: Bool[Tensor, "*#B #T S"] | None = None,
    ) -> Stream:
        """Return the stream behind the layer.

        Args:
            X: the stream.
            mask: True where a token may look at another one.
            memory: what a decoder looks at.
            memory_mask: True where a token may look at the memory.
        """
        self._check(memory)
        return self._run(
            X,
            lambda x: self.attention(x, x, mask)[0],
            lambda x: self.cross(x, memory, memory_mask)[0],
        )

    def step(
        self,
        x: Float[Tensor, "B 1 D"],
        past: KeysValues,
        memory: KeysValues | Any = None,
        memory_mask: Bool[Tensor, "*#B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "B 1 D"], KeysValues]:
        """Return the stream at the next token, and the past with its key and value.

        Args:
            x: the stream at this token.
            past: keys and values of the tokens before it; see :meth:`nothing`.
            memory: keys and values of the memory, from :meth:`cross_memory`.
            memory_mask: True where the token may look at the memory.
        """
        self._check(memory)
        kept: list[KeysValues] = []

        def look(x: Tensor) -> Tensor:
            K, V = self.attention.remember(x)
            K, V = torch.cat([past[0], K], 2), torch.cat([past[1], V], 2)
            kept.append((K, V))
            return self.attention.look(x, K, V)[0]

        def look_back(x: Tensor) -> Tensor:
            return self.cross.look(x, *memory, memory_mask)[0]

        return self._run(x, look, look_back), kept[0]

    def nothing(self, B: int) -> KeysValues:
        """Return the past of a first token: no key and no value."""
        h, D = self.attention.num_heads, self.attention.d_model
        empty = self.attention.W_K.weight.new_zeros(B, h, 0, D // h)
        return empty, empty

    def cross_memory(self, memory: Float[Tensor, "B S D"]) -> KeysValues:
        """Return keys and values of a memory: computed once, used at every step."""
        self._check(memory)
        keys_values: KeysValues = self.cross.remember(memory)
        return keys_values

    def _run(
        self,
        X: Tensor,
        look: Callable[[Tensor], Tensor],
        look_back: Callable[[Tensor], Tensor],
    ) -> Tensor:
        X = self._around(X, look, self.norms[0])
        if self.cross is not None:
            X = self._around(X, look_back, self.norms[1])
        return self._around(X, self.feed_forward, self.norms[-1])

    def _around(
        self, X: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module
    ) -> Tensor:
        if self.norm_first:
            return X + self.dropout(f(norm(X)))
        return norm(X + self.dropout(f(X)))

    def _check(self, memory: object) -> None:
        without = self.cross is None
        rule = "be left out without cross=True, and given with it"
        got = "None" if memory is None else "one"
        check(without == (memory is None), "Block: memory", rule, got)


class Stack(nn.Module):
    """Transformer layers one behind the other.

    Equals ``torch.nn.TransformerEncoder`` with the mask negated.
    Equals ``torch.nn.TransformerDecoder`` with the masks negated, if its layers have
    ``cross=True``.

    Args:
        num_layers: how many; with norms first, one more norm follows the last.
        layer: makes one of them.

    Example:
        >>> stack, x = Stack(2, lambda: Block(4, 2)), torch.arange(4.0).view(1, 1, 4)
        >>> y, cache = stack.step(x, stack.begin(1))
        >>> torch.allclose(y, stack(x), atol=1e-5)
        True
    """

    def __init__(self, num_layers: int, layer: Callable[[], Block]) -> None:
        super().__init__()
        check_whole("Stack: num_layers", num_layers, 1)
        first, *others = [layer() for _ in range(num_layers)]
        self.blocks: Any = nn.ModuleList([first, *others])
        d_model = first.attention.d_model
        self.norm = nn.LayerNorm(d_model) if first.norm_first else nn.Identity()

    def forward(
        self,
        X: Stream,
        mask: Bool[Tensor, "*#B #T T"] | None = None,
        memory: Float[Tensor, "B S D"] | None = None,
        memory_mask: Bool[Tensor, "*#B #T S"] | None = None,
    ) -> Stream:
        """Return the stream behind all layers; arguments as those of a :class:`Block`."""
        for block in self.blocks:
            X = block(X, mask, memory, memory_mask)
        behind: Tensor = self.norm(X)
        return behind

    def begin(self, B: int, memory: Float[Tensor, "B S D"] | None = None) -> Cache:
        """Return what :meth:`step` keeps: no past yet, and the memory as keys and values."""
        cache: Cache = ()
        for block in self.blocks:
            cache += block.nothing(B)
            cache += () if memory is None else block.cross_memory(memory)
        return cache

    def step(
        self,
        x: Float[Tensor, "B 1 D"],
        cache: Cache,
        memory_mask: Bool[Tensor, "*#B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "B 1 D"], Cache]:
        """Return the stream at one more token, and the cache with its keys and values.

        It looks back at keys and values that earlier steps computed, so a step costs as
        much as there are tokens, and not their square.
        """
        per, new = len(cache) // len(self.blocks), ()
        for i, block in enumerate(self.blocks):
            K, V, *memory = cache[per * i : per * (i + 1)]
            x, past = block.step(x, (K, V), tuple(memory) or None, memory_mask)
            new += (*past, *memory)
        return self.norm(x), new
