r"""Finding the rows of a matrix with the largest inner products.

Exactly, by computing all of them; by the reduction to nearest neighbours, which takes one
more coordinate; and approximately, by tables of random hyperplanes.
"""

from math import pi

from jaxtyping import Float, Int64

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import check, check_shape, check_sizes, check_whole

__all__ = [
    "HyperplaneTables",
    "collision_probability",
    "largest",
    "lift",
    "lift_query",
    "nearest",
]


def largest(
    W: Float[Tensor, "C D"], z: Float[Tensor, "D"], k: int = 1
) -> Int64[Tensor, "k"]:
    r"""Return the ``k`` rows with the largest inner products with a query.

    The row with the largest :math:`w_c^\top z` comes first.

    Of equal ones, the first.

    Example:
        >>> W = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
        >>> largest(W, torch.tensor([1.0, -1.0]), k=2).tolist()  # of 1, -2, 0
        [0, 2]
    """
    _check_search("largest", W, z, k)
    return torch.sort(W @ z, descending=True, stable=True).indices[:k]


def nearest(
    W: Float[Tensor, "C D"], z: Float[Tensor, "D"], k: int = 1
) -> Int64[Tensor, "k"]:
    r"""Return the ``k`` rows nearest to a query, the nearest first.

    The distance is :math:`\lVert w_c - z \rVert`.

    Equals ``sklearn.neighbors.NearestNeighbors``.

    Example:
        >>> W = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
        >>> nearest(W, torch.tensor([0.0, 1.5]), k=2).tolist()
        [1, 0]
    """
    _check_search("nearest", W, z, k)
    return torch.sort((W - z).norm(dim=1), stable=True).indices[:k]


def lift(W: Float[Tensor, "C D"]) -> Float[Tensor, "C D+1"]:
    r"""Add a coordinate to each row that makes all rows equally long.

    It is :math:`\sqrt{R^2 - \lVert w_c \rVert^2}`, with the largest length :math:`R` of
    a row.

    Example:
        >>> lift(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[3.0, 4.0, 0.0], [0.0, 0.0, 5.0]]
    """
    ok, got = W.ndim == 2 and len(W) > 0, f"shape {tuple(W.shape)}"
    check(ok, "lift: W", "have vectors as rows", got)
    square = (W**2).sum(dim=1)
    rest = (square.max() - square).clamp(min=0).sqrt()
    return torch.cat([W, rest[:, None]], dim=1)


def lift_query(z: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D+1"]:
    """Add a zero to queries, so that inner products with lifted rows stay the same.

    Example:
        >>> lift_query(torch.tensor([1.0, 2.0])).tolist()
        [1.0, 2.0, 0.0]
    """
    return torch.cat([z, torch.zeros_like(z[..., :1])], dim=-1)


def collision_probability(
    angle: Float[Tensor, "*N"], bits: int, tables: int
) -> Float[Tensor, "*N"]:
    r"""Return the probability that two vectors share a bucket in some hash table.

    A random hyperplane does not separate them with probability
    :math:`1 - \theta / \pi`, so it is :math:`1 - (1 - (1 - \theta / \pi)^m)^L` for
    :math:`m` bits and :math:`L` tables.

    Args:
        angle: the angle :math:`\theta` between the vectors.
        bits: hyperplanes :math:`m` per table.
        tables: number :math:`L` of tables.

    Example:
        >>> collision_probability(torch.tensor(pi / 2), bits=1, tables=2)  # 1 - 1/2²
        tensor(0.7500)
    """
    check_sizes("collision_probability", bits=bits, tables=tables)
    return 1 - (1 - (1 - angle / pi) ** bits) ** tables


class HyperplaneTables:
    """Hash tables whose buckets hold the rows on the same sides of random hyperplanes.

    The rows are lifted first, so that a larger inner product is a smaller angle.

    Args:
        W: the vectors to be found, as rows.
        bits: hyperplanes per table; a table has up to 2 to this power buckets.
        tables: how many, each with its own hyperplanes.
        generator: source of the hyperplanes.

    Attributes:
        W: the vectors.
        normals: of the hyperplanes, for each table its rows.

    Example:
        >>> W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])  # a hyperplane parts them
        >>> HyperplaneTables(W, bits=3, tables=2).candidates(torch.tensor([2.0, 0.0]))
        tensor([0])
    """

    def __init__(
        self,
        W: Float[Tensor, "C D"],
        bits: int,
        tables: int,
        generator: Generator | None = None,
    ) -> None:
        check_whole("HyperplaneTables: bits", bits, 1)
        check(bits <= 62, "HyperplaneTables: bits", "be at most 62", bits)
        check_whole("HyperplaneTables: tables", tables, 1)
        self.W = W
        lifted = lift(W)
        shape = (tables, bits, lifted.shape[1])
        self.normals = torch.randn(shape, generator=generator, dtype=W.dtype)
        self._rows, self._starts = [], []
        for keys in self._keys(lifted).T:
            order = keys.argsort(stable=True)
            self._rows.append(order)
            self._starts.append(keys[order])

    def candidates(
        self, z: Float[Tensor, "D"], tables: int | None = None
    ) -> Int64[Tensor, "_"]:
        """Return the rows that share a bucket with a query, in order.

        Args:
            z: the query.
            tables: use only the first of the tables; by default, all.
        """
        check_shape("HyperplaneTables: z", z, self.W.shape[1])
        tables = len(self.normals) if tables is None else tables
        check_whole("HyperplaneTables.candidates: tables", tables, 1)
        found = []
        keys = self._keys(lift_query(z)[None])[0]
        for rows, sorted_keys, key in zip(
            self._rows[:tables], self._starts, keys, strict=False
        ):
            first = torch.searchsorted(sorted_keys, key)
            last = torch.searchsorted(sorted_keys, key, right=True)
            found.append(rows[first:last])
        return torch.cat(found).unique()

    def search(
        self, z: Float[Tensor, "D"], k: int = 1, tables: int | None = None
    ) -> Int64[Tensor, "_"]:
        """Return the best ``k`` of the candidates, or fewer if there are fewer."""
        _check_search("HyperplaneTables.search", self.W, z, k)
        rows = self.candidates(z, tables)
        if not len(rows):
            return rows
        return rows[largest(self.W[rows], z, min(k, len(rows)))]

    def _keys(self, X: Tensor) -> Tensor:
        """Return the bucket of each row in each table: its sides, read as a number."""
        sides = torch.einsum("lbd,nd->nlb", self.normals, X) > 0
        return (sides.long() << torch.arange(sides.shape[-1])).sum(-1)


def _check_search(who: str, W: Tensor, z: Tensor, k: int) -> None:
    check_shape(f"{who}: W", W, None, None)
    check_shape(f"{who}: z", z, W.shape[1])
    check_whole(f"{who}: k", k, 1)
    check(k <= len(W), f"{who}: k", f"be at most the {len(W)} rows", k)
