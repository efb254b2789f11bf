"""What GPT and BERT share: tokens and their places enter, and layers follow."""

from jaxtyping import Float, Int64

from dlcore._torch import Generator, Tensor, nn
from dlcore.checks import check, check_sizes
from dlcore.recurrence.embedding import Embedding
from dlcore.recurrence.vocabulary import check_tokens
from dlcore.transformers.blocks import Block, Stack

__all__ = ["LanguageModel"]


class LanguageModel(nn.Module):
    r"""The base of GPT and BERT: embeddings of tokens and positions, then layers.

    Tokens enter as :math:`e + p_t`, both learned, and :math:`N` layers follow.

    Args:
        tokens: size of the vocabulary.
        context: number of places; longer sequences are refused.
        d_model: width :math:`D` of a token.
        num_heads: of each attention.
        num_layers: number of layers :math:`N`.
        dropout: probability of dropping, on the inputs and on what a sublayer adds.
        generator: source of the weights.

    Example:
        >>> net = LanguageModel(9, 4, d_model=8, num_heads=2, num_layers=1)
        >>> entered = net.enter(torch.tensor([[3]]))[0, 0]
        >>> torch.equal(entered, net.embed.E[3] + net.places.E[0])
        True
    """

    def __init__(
        self,
        tokens: int,
        context: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        dropout: float = 0.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {"tokens": tokens, "context": context, "d_model": d_model}
        check_sizes(type(self).__name__, **sizes, num_layers=num_layers)
        self.context, self.d_model = context, d_model
        self.embed = Embedding(tokens, d_model, generator, std=d_model**-0.5)
        self.places = Embedding(context, d_model, generator, std=d_model**-0.5)

        def layer() -> Block:
            return Block(
                d_model, num_heads, dropout=dropout, phi=nn.GELU(), generator=generator
            )

        self.stack = Stack(num_layers, layer)
        self.dropout = nn.Dropout(dropout)
        self.extend(generator)

    def extend(self, generator: Generator | None) -> None:
        """Add what a model has besides; here nothing."""

    def enter(self, x: Int64[Tensor, "B T"], first: int = 0) -> Float[Tensor, "B T D"]:
        r"""Return :math:`e + p_t` for tokens of which the first has the place ``first``."""
        who = type(self).__name__
        check_tokens(f"{who}: x", x, len(self.embed.E))
        T = first + x.shape[1]
        rule = f"be no longer than the context of {self.context} tokens"
        hint = "Cut the beginning off, or make a model with a longer context."
        check(self.context >= T, f"{who}: x", rule, T, hint)
        return self.embed(x) + self.places.E[first:T]
