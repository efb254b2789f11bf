"""Pictures as sequences: patches are tokens (Dosovitskiy et al. 2021)."""

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_shape, check_sizes, check_whole
from dlcore.transformers.blocks import Block, Stack
from dlcore.transformers.linear import Linear

__all__ = ["ViT", "patchify", "rollout", "unpatchify"]


def patchify(X: Float[Tensor, "B C R S"], patch: int) -> Float[Tensor, "B T d"]:
    """Cut images into square patches, row by row, and flatten each patch.

    Equals ``torch.nn.functional.unfold`` with the patch as stride, transposed.

    Args:
        X: pictures, whose sides are multiples of that of a patch.
        patch: side of a patch in pixels.

    Example:
        >>> X = torch.arange(16.0).view(1, 1, 4, 4)
        >>> patchify(X, 2)[0, 0].tolist()
        [0.0, 1.0, 4.0, 5.0]
    """
    check_whole("patchify: patch", patch, 1)
    sides, got = X.shape[2:], f"shape {tuple(X.shape)}"
    ok = X.ndim == 4 and min(X.shape[1:]) > 0 and not any(n % patch for n in sides)
    rule = f"have the axes (B, C, rows, columns), the last two multiples of {patch}"
    check(ok, "patchify: X", rule, got)
    rows = X.unfold(2, patch, patch).unfold(3, patch, patch)
    return rows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def unpatchify(
    P: Float[Tensor, "B T d"], patch: int, channels: int, rows: int
) -> Float[Tensor, "B C R S"]:
    """Put the patches of images together again: the inverse of :func:`patchify`.

    Args:
        P: patches as rows.
        patch: side of a patch in pixels.
        channels: of the pictures.
        rows: of pixels in a picture.

    Example:
        >>> X = torch.arange(16.0).view(1, 1, 4, 4)
        >>> torch.equal(unpatchify(patchify(X, 2), patch=2, channels=1, rows=4), X)
        True
    """
    check_sizes("unpatchify", patch=patch, channels=channels, rows=rows)
    check_shape("unpatchify: P", P, None, None, channels * patch**2)
    ok = rows % patch == 0 and P.shape[1] % (rows // patch) == 0
    rule = f"be whole rows of patches for pictures of {rows} rows"
    check(ok, "unpatchify: P", rule, f"{P.shape[1]} patches")
    grid = (rows // patch, -1)
    tiles = P.unflatten(2, (channels, patch, patch)).unflatten(1, grid)
    return tiles.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


class ViT(nn.Module):
    r"""A vision transformer: patches are tokens, and a class token is read out.

    .. math::
        X_0 &= [x_{\text{class}};\, E p_1;\, \dots;\, E p_T] + P \\
        o &= W\, \operatorname{stack}(X_0)_{\text{class}} + b

    Args:
        side: of the square pictures, in pixels; a multiple of ``patch``.
        patch: side of a patch.
        classes: number of classes.
        d_model: width of a token.
        num_heads: of each attention.
        num_layers: of the encoder.
        channels: of the pictures.
        dropout: probability of dropping, on the inputs and on what a sublayer adds.
        generator: source of the weights.

    Example:
        >>> net = ViT(side=4, patch=2, classes=3, d_model=8, num_heads=2, num_layers=1)
        >>> net.tokens(torch.zeros(1, 1, 4, 4)).shape[1]  # 4 patches, 1 class token
        5
    """

    def __init__(
        self,
        side: int,
        patch: int,
        classes: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        channels: int = 1,
        dropout: float = 0.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {"side": side, "patch": patch, "classes": classes, "channels": channels}
        check_sizes("ViT", **sizes, d_model=d_model, num_layers=num_layers)
        check(side % patch == 0, "ViT: side", f"be a multiple of patch = {patch}", side)
        self.side, self.patch, self.channels = side, patch, channels
        self.embed = Linear(channels * patch**2, d_model, generator=generator)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        places = torch.randn(1, (side // patch) ** 2 + 1, d_model, generator=generator)
        self.places = nn.Parameter(0.02 * places)

        def layer() -> Block:
            return Block(
                d_model, num_heads, dropout=dropout, phi=nn.GELU(), generator=generator
            )

        self.stack = Stack(num_layers, layer)
        self.head = Linear(d_model, classes, generator=generator)
        self.dropout = nn.Dropout(dropout)

    def tokens(self, X: Float[Tensor, "B C R S"]) -> Float[Tensor, "B T D"]:
        """Return what enters the stack: the class token, then the patches."""
        check_shape("ViT: X", X, None, self.channels, self.side, self.side)
        E = self.embed(patchify(X, self.patch))
        first = self.class_token.expand(len(X), -1, -1)
        entered: Tensor = self.dropout(torch.cat([first, E], 1) + self.places)
        return entered

    def forward(self, X: Float[Tensor, "B C R S"]) -> Float[Tensor, "B K"]:
        """Return scores of the classes."""
        scores: Tensor = self.head(self.stack(self.tokens(X))[:, 0])
        return scores

    def maps(self, X: Float[Tensor, "B C R S"]) -> list[Float[Tensor, "B h T T"]]:
        """Return the attention weights of all heads, layer by layer.

        The first row and column of a table belong to the class token. Switch dropout off
        before, with ``eval()``.
        """
        stream, found = self.tokens(X), []
        for block in self.stack.blocks:
            read = block.norms[0](stream)
            found.append(block.attention(read, read)[1])
            stream = block(stream)
        return found


def rollout(maps: list[Float[Tensor, "B h T T"]]) -> Float[Tensor, "B T T"]:
    r"""Return how much each token draws on each input token through all layers.

    Attention is followed as by Abnar and Zuidema (2020).

    Heads are averaged, and half of each layer is its shortcut:

    .. math:: M = \prod_l \tfrac12 (A_l + I),

    with the last layer on the left. A row says from which tokens of the input a token would
    be mixed, if layers did nothing but take these means.

    Args:
        maps: weights of the heads, layer by layer.

    Example:
        >>> rollout([torch.full((1, 1, 2, 2), 0.5)]).tolist()
        [[[0.75, 0.25], [0.25, 0.75]]]
    """
    check(len(maps) > 0, "rollout: maps", "have at least one layer", 0)
    T = maps[0].shape[-1]
    M = torch.eye(T).to(maps[0]).expand(len(maps[0]), T, T)
    for A in maps:
        M = (A.mean(dim=1) + torch.eye(T).to(A)) / 2 @ M
    return M
