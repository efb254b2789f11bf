"""Tasks that need a memory: what is asked for at the end was shown long before.

All sequences are drawn anew, as many as one likes, so what a network was trained on and
what it is tested on never overlap.
"""

from jaxtyping import Float, Int

from dlcore._torch import Generator, Tensor, torch
from dlcore.checks import check_sizes, check_whole

__all__ = ["adding", "copying", "spikes"]


def adding(
    B: int, T: int, generator: Generator | None = None
) -> tuple[Float[Tensor, "B T 2"], Float[Tensor, "B"]]:
    r"""Draw the adding problem: the sum of two marked numbers among many.

    The number at each time is uniform on [0, 1]. A mark, 1 and not 0, stands beside one
    number of the first half and one of the second; with an odd ``T``, the first half is
    the shorter one. The mean of the sum is 1 and its variance :math:`\tfrac16`.

    Args:
        B: number of sequences.
        T: their length, at least 2.
        generator: source of randomness.

    Returns:
        Numbers and marks, and the sums of the two marked numbers.

    Example:
        >>> x, y = adding(3, 10, torch.Generator().manual_seed(0))
        >>> numbers, marks = x.unbind(dim=2)
        >>> marks.sum(dim=1).tolist(), torch.allclose((numbers * marks).sum(dim=1), y)
        ([2.0, 2.0, 2.0], True)
    """
    check_whole("adding: B", B, 1)
    check_whole("adding: T", T, 2)
    numbers = torch.rand(B, T, generator=generator)
    first = torch.randint(0, T // 2, (B, 1), generator=generator)
    second = torch.randint(T // 2, T, (B, 1), generator=generator)
    marks = torch.zeros(B, T).scatter(1, torch.cat([first, second], 1), 1.0)
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(dim=1)


def copying(
    B: int, word: int, C: int, lag: int, generator: Generator | None = None
) -> tuple[Float[Tensor, "B T D"], Int[Tensor, "B K"]]:
    """Draw the copying task: a word is shown, and asked for after a pause.

    Letters are 0 to ``C - 1``, silence is ``C`` and the bell ``C + 1``. A sequence has
    the letters of the word, silence ``lag`` times, the bell, and silence for the other
    letters of the answer, the first of which is due at the bell.

    Args:
        B: number of sequences.
        word: letters of the word, at least 1.
        C: letters of the alphabet, at least 2.
        lag: times of silence between word and bell.
        generator: source of randomness.

    Returns:
        The sequences, one-hot, of length ``2 * word + lag``, and the words.

    Example:
        >>> x, words = copying(1, 2, 5, 3, torch.Generator().manual_seed(0))
        >>> x.argmax(dim=2)[0, 2:].tolist()  # behind the word: silence is 5, the bell 6
        [5, 5, 5, 6, 5]
    """
    check_sizes("copying", B=B, word=word)
    check_whole("copying: C", C, 2)
    check_whole("copying: lag", lag, 0)
    words = torch.randint(0, C, (B, word), generator=generator)
    tokens = torch.full((B, 2 * word + lag), C)
    tokens[:, :word] = words
    tokens[:, word + lag] = C + 1
    return torch.eye(C + 2)[tokens], words


def spikes(
    B: int, T: int, least: int, most: int, generator: Generator | None = None
) -> tuple[Float[Tensor, "B T 1"], Float[Tensor, "B T"]]:
    """Draw spikes at random distances, with the time since the last spike as target.

    Distances between spikes are uniform on the whole numbers from ``least`` to
    ``most``, and the first spike stands at the first time.

    Args:
        B: number of sequences.
        T: their length.
        least: the smallest distance.
        most: the largest distance.
        generator: source of randomness.

    Returns:
        The spikes, 1 among 0, and for each time since when there was silence: the
        number of steps since the last spike before it, 0 where there was none.

    Example:
        >>> x, since = spikes(1, 7, least=3, most=3)
        >>> x[0, :, 0].tolist(), since[0].tolist()
        ([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    """
    check_sizes("spikes", B=B, T=T, least=least)
    check_whole("spikes: most", most, least)
    gaps = torch.randint(least, most + 1, (B, T), generator=generator)
    places = torch.cat([torch.zeros(B, 1).long(), gaps.cumsum(dim=1)], dim=1)
    x = torch.zeros(B, T + 1).scatter(1, places.clamp(max=T), 1.0)[:, :T]
    since, waited = torch.zeros(B, T), torch.zeros(B)
    for t in range(1, T):
        waited = torch.where(x[:, t - 1] > 0, 1.0, waited + 1)
        since[:, t] = waited
    return x[:, :, None], since
