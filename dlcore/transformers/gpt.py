"""A transformer that only writes: each token looks at those before it."""

from jaxtyping import Float, Int64

from dlcore._torch import Tensor, nn, torch
from dlcore.checks import check, check_whole
from dlcore.recurrence.vocabulary import check_tokens
from dlcore.transformers.attention import causal_mask
from dlcore.transformers.blocks import Cache, Stack
from dlcore.transformers.transformer import embedding


class GPT(nn.Module):
    r"""A decoder-only transformer (Radford et al. 2018, with the norms of 2019).

    A token enters as :math:`e + p_t`, both learned; :math:`N` layers follow, a norm, and
    scores :math:`E x`, with the embeddings again.

    Args:
        tokens: size of the vocabulary.
        context: number of places; longer sequences are refused.
        d_model: width :math:`D` of a token.
        num_heads: of each attention.
        num_layers: number of layers :math:`N`.
        dropout: probability of dropping, on the inputs and on what a sublayer adds.
    """

    def __init__(
        self,
        tokens: int,
        context: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_whole("GPT: tokens", tokens, 1)
        check_whole("GPT: context", context, 1)
        self.context = context
        self.embed = embedding(tokens, d_model)
        self.places = embedding(context, d_model)
        self.stack = Stack(
            num_layers, d_model, num_heads, dropout=dropout, phi=nn.GELU()
        )
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():  # what the branches add up to starts small
            for block in self.stack.blocks:
                for last in (block.attention.W_O, block.feed_forward[-1]):
                    last.weight /= (2 * num_layers) ** 0.5

    def forward(self, x: Int64[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """Return scores of the token after each of these."""
        check_tokens("GPT: x", x, self.embed.num_embeddings)
        X = self.stack(self._enter(x, 0), causal_mask(x.shape[1]))
        return X @ self.embed.weight.T

    def begin(self, B: int) -> Cache:
        """Return what :meth:`step` keeps of no token: empty keys and values."""
        check_whole("GPT.begin: B", B, 1)
        return self.stack.begin(B)

    def step(
        self, x: Int64[Tensor, "B"], cache: Cache
    ) -> tuple[Float[Tensor, "B C"], Cache]:
        """Take one more token; return scores of the next one, and the longer cache."""
        check_tokens("GPT.step: x", x[:, None], self.embed.num_embeddings)
        X = self._enter(x[:, None], first=cache[0].shape[2])
        X, cache = self.stack.step(X, cache)
        return X[:, 0] @ self.embed.weight.T, cache

    def _enter(self, x: Tensor, first: int) -> Tensor:
        T = first + x.shape[1]
        check(
            self.context >= T,
            "GPT: x",
            f"be no longer than the context of {self.context} tokens",
            T,
            "Cut the beginning off, or make a model with a longer context.",
        )
        t = torch.arange(first, T)
        entered: Tensor = self.dropout(self.embed(x) + self.places(t))
        return entered
