"""A transformer that only writes: each token looks at those before it."""

from jaxtyping import Float, Int64

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import check_whole
from dlcore.transformers.attention import causal_mask
from dlcore.transformers.blocks import Cache
from dlcore.transformers.language_model import LanguageModel

__all__ = ["GPT"]


class GPT(LanguageModel):
    r"""A decoder-only transformer, which predicts the next token (Radford et al. 2018).

    Norms stand first, as in GPT-2 (2019).

    A token enters as :math:`e + p_t`, both learned; :math:`N` layers follow, a norm, and
    scores :math:`E x`, with the embeddings again. Arguments are those of
    :class:`~dlcore.transformers.language_model.LanguageModel`.

    Example:
        >>> net = GPT(9, 4, d_model=8, num_heads=2, num_layers=1)
        >>> one, other = net(torch.tensor([[1, 2, 3]])), net(torch.tensor([[1, 2, 7]]))
        >>> torch.allclose(one[:, :2], other[:, :2], atol=1e-5)  # the future is hidden
        True
    """

    @torch.no_grad()
    def extend(self, generator: Generator | None) -> None:
        """Let what the branches add up to start small."""
        for block in self.stack.blocks:
            for last in (block.attention.W_O, block.feed_forward[-1]):
                last.weight /= (2 * len(self.stack.blocks)) ** 0.5

    def forward(self, x: Int64[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """Return scores of the token after each of these."""
        X = self.stack(self.dropout(self.enter(x)), causal_mask(x.shape[1]))
        return X @ self.embed.E.T

    def begin(self, B: int) -> Cache:
        """Return what :meth:`step` keeps of no token: empty keys and values."""
        check_whole("GPT.begin: B", B, 1)
        return self.stack.begin(B)

    def step(
        self, cache: Cache, x: Int64[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B C"], Cache]:
        """Take one more token; return log probabilities of the next one, and the cache."""
        X = self.dropout(self.enter(x[:, None], first=cache[0].shape[2]))
        X, cache = self.stack.step(X, cache)
        return torch.log_softmax(X[:, 0] @ self.embed.E.T, dim=1), cache
