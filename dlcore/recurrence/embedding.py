r"""Words as points: a row of a table for each, two models that learn the table, neighbours.

A token is a whole number from 0 to C − 1, the row of a word in a table :math:`E`.
:class:`CBOW` guesses a word from the words around it, :class:`SkipGram` the words around it
from a word.
"""

from jaxtyping import Float, Int64

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_positive, check_shape, check_sizes, check_whole
from dlcore.recurrence.vocabulary import check_indices

__all__ = [
    "CBOW",
    "Embedding",
    "SkipGram",
    "TwoTables",
    "bag_of_words",
    "cosine",
    "neighbours",
]


class Embedding(nn.Module):
    r"""A table with a vector for each token, learned with the rest of the model.

    A token ``v`` becomes :math:`E^\top e_v`, row ``v`` of :math:`E`.

    Equals ``torch.nn.Embedding``.

    Args:
        num_embeddings: number ``C`` of tokens.
        embedding_dim: length ``D`` of a row.
        generator: source of the first rows, normal numbers with the mean 0.
        std: their standard deviation; that of PyTorch is 1.

    Attributes:
        E: the table, of shape (C, D).

    Example:
        >>> layer = Embedding(3, 2)
        >>> layer.E.data = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        >>> layer(torch.tensor([2, 0])).tolist()
        [[4.0, 5.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        generator: Generator | None = None,
        std: float = 1.0,
    ) -> None:
        super().__init__()
        check_sizes(
            "Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim
        )
        check_positive("Embedding: std", std)
        size = (num_embeddings, embedding_dim)
        self.E = nn.Parameter(std * torch.randn(size, generator=generator))

    def forward(self, tokens: Int64[Tensor, "*axes"]) -> Float[Tensor, "*axes D"]:
        """Look up the rows of tokens."""
        check_indices("Embedding: tokens", tokens, len(self.E))
        rows = self.E.index_select(0, tokens.flatten())
        return rows.view(*tokens.shape, self.E.shape[1])


class TwoTables(nn.Module):
    r"""A word model with a table to read words from and a table to score words with.

    The tables are :math:`E` and :math:`W`.

    Subclasses say what :meth:`hidden` makes of their input; the scores are
    :math:`o_c = w_c^\top h`.

    Args:
        num_embeddings: number ``C`` of tokens.
        embedding_dim: length ``D`` of their vectors.
        generator: source of the first vectors.

    Attributes:
        embedding: the vectors of the words that are read.
        W: the vectors of the words that are guessed, of shape (C, D), zero at first.

    Example:
        >>> SkipGram(4, 2)(torch.tensor([1])).softmax(dim=1).tolist()  # W is 0 at first
        [[0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_whole(f"{type(self).__name__}: embedding_dim", embedding_dim, 1)
        size, std = (num_embeddings, embedding_dim), embedding_dim**-0.5
        self.embedding = Embedding(*size, generator, std)
        self.W = nn.Parameter(torch.zeros_like(self.embedding.E))

    def hidden(self, given: Int64[Tensor, "B *K"]) -> Float[Tensor, "B D"]:
        """Return what the scores are computed from."""
        raise NotImplementedError

    def forward(self, given: Int64[Tensor, "B *K"]) -> Float[Tensor, "B C"]:
        """Return the score of every word of the vocabulary."""
        return self.hidden(given) @ self.W.T

    def score(
        self, given: Int64[Tensor, "B *K"], words: Int64[Tensor, "B k"]
    ) -> Float[Tensor, "B k"]:
        """Return the scores of a few words per row, without computing the others."""
        check_indices("score: words", words, len(self.W))
        h = self.hidden(given)
        check_shape("score: words", words, len(h), None)
        rows = self.W.index_select(0, words.flatten()).view(*words.shape, -1)
        return (rows * h[:, None]).sum(dim=2)


class SkipGram(TwoTables):
    r"""A model that predicts the words around a word ``v``.

    The hidden vector is :math:`h = E^\top e_v`.

    Example:
        >>> model = SkipGram(3, 2)
        >>> torch.equal(model.hidden(torch.tensor([1]))[0], model.embedding.E[1])
        True
    """

    def hidden(self, given: Int64[Tensor, "B"]) -> Float[Tensor, "B D"]:
        """Return the vectors of words."""
        check_shape("SkipGram: words", given, None)
        return self.embedding(given)


class CBOW(TwoTables):
    r"""A model that predicts a word from the words around it.

    The hidden vector is their mean, :math:`h = \frac1K \sum_j E^\top e_{c_j}`.

    A mean has no order: the words around are a bag (continuous bag of words).

    Example:
        >>> model = CBOW(3, 1)
        >>> model.embedding.E.data = torch.tensor([[1.0], [2.0], [6.0]])
        >>> model.hidden(torch.tensor([[0, 1, 2], [2, 1, 0]])).tolist()
        [[3.0], [3.0]]
    """

    def hidden(self, given: Int64[Tensor, "B K"]) -> Float[Tensor, "B D"]:
        """Return the mean of the vectors of each context."""
        ok, got = given.ndim == 2 and given.shape[1] > 0, f"shape {tuple(given.shape)}"
        check(ok, "CBOW: context", "have one token or more in each row", got)
        return self.embedding(given).mean(dim=1)


def cosine(X: Float[Tensor, "A D"], Y: Float[Tensor, "C D"]) -> Float[Tensor, "A C"]:
    """Return the cosine of the angle between each row of X and each row of Y.

    Equals ``sklearn.metrics.pairwise.cosine_similarity``.

    Example:
        >>> cosine(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
        tensor([[0.6000, 0.0000]])
    """
    lengths = [Z.norm(dim=1, keepdim=True) for Z in (X, Y)]
    ok = all(bool((length > 0).all()) for length in lengths)
    check(ok, "cosine: rows", "not be zero", "a row of zeros, without angles")
    return (X / lengths[0]) @ (Y / lengths[1]).T


def neighbours(
    X: Float[Tensor, "C D"],
    of: Int64[Tensor, "B"],
    k: int,
    without: tuple[int, ...] = (),
) -> Int64[Tensor, "B k"]:
    """Return the ``k`` rows with the largest cosine to given rows, the best first.

    Equals ``sklearn.neighbors.NearestNeighbors`` with the cosine metric, but
    for the row itself.

    Args:
        X: vectors as rows.
        of: the rows whose neighbours are wanted; a row is not its own neighbour.
        k: how many.
        without: rows that are nobody's neighbours.

    Example:
        >>> X = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]])
        >>> neighbours(X, torch.tensor([0]), 2).tolist()
        [[1, 2]]
    """
    check_indices("neighbours: of", of, len(X))
    check_whole("neighbours: k", k, 1)
    most = len(X) - 1 - len(without)
    check(k <= most, "neighbours: k", f"be at most {most}, the others", k)
    similar = cosine(X[of], X)
    similar[torch.arange(len(of)), of] = -torch.inf
    similar[:, list(without)] = -torch.inf
    return similar.topk(k, dim=1).indices


def bag_of_words(tokens: Int64[Tensor, "B T"], size: int) -> Float[Tensor, "B C"]:
    """Count the words of each row: the sum of their one-hot vectors.

    Equals ``sklearn.feature_extraction.text.CountVectorizer``, given tokens for words.

    Example:
        >>> bag_of_words(torch.tensor([[0, 2, 2]]), 3).tolist()
        [[1.0, 0.0, 2.0]]
    """
    check_indices("bag_of_words: tokens", tokens, size)
    counts = torch.zeros(len(tokens), size)
    return counts.scatter_add_(1, tokens, torch.ones(tokens.shape))
