r"""Training with many classes when only a few of them are looked at.

With scores :math:`o_1, \dots, o_C` the log-likelihood of the class :math:`y` is
:math:`o_y - \log \sum_c e^{o_c}`. The losses here take the score of :math:`y` and the
scores of :math:`k` classes drawn from a **noise** distribution :math:`q` instead of all
:math:`C`. They need the scores :math:`o`, and :math:`\log q` of what was drawn.
"""

from math import log

from jaxtyping import Bool, Float, Int64

from dlcore._torch import Generator, Tensor, logsigmoid, torch
from dlcore.checks import check, check_shape, check_whole

__all__ = [
    "AliasSampler",
    "anchored_loss",
    "importance_loss",
    "importance_weights",
    "nce_loss",
    "negative_sampling_loss",
]


class AliasSampler:
    r"""A sampler of classes whose draws cost the same for any number of classes.

    Every class gets a cell of width :math:`1/C`, which holds at most one other class. To
    draw, choose a cell, then toss its coin (Walker 1977).

    Args:
        weights: of the classes, such as counts; positive.
        power: raises the weights to it; 0 gives all classes the same probability, and
            word2vec takes 3/4.

    Attributes:
        log_q: the log-probabilities :math:`\log q_c`.
        keep: the probability with which the draw from a cell is its own class.
        other: the other class of a cell.

    Example:
        >>> AliasSampler(torch.tensor([1.0, 3.0])).probabilities().tolist()
        [0.25, 0.75]
    """

    def __init__(self, weights: Float[Tensor, "C"], power: float = 1.0) -> None:
        what, some = "AliasSampler: weights", weights.numel() > 0
        check(some, what, "be those of at least one class", "none")
        check(bool(weights.isfinite().all()), what, "be finite", "NaN or ∞")
        hint = "A class that is never drawn is never pushed down."
        check(bool((weights > 0).all()), what, "be positive", weights.min(), hint)
        q = weights.double() ** power
        q = q / q.sum()
        self.log_q = q.log()
        C = len(q)
        self.keep, self.other = (torch.ones(C, dtype=torch.double), torch.arange(C))
        rest = (C * q).tolist()  # in units of a cell
        small = [c for c in range(C) if rest[c] < 1]
        large = [c for c in range(C) if rest[c] >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            self.keep[poor], self.other[poor] = rest[poor], rich
            rest[rich] -= 1 - rest[poor]
            if rest[rich] < 1:
                small.append(large.pop())

    def probabilities(self) -> Float[Tensor, "C"]:
        """Return the probabilities with which the cells give the classes."""
        C = len(self.keep)
        return self.keep.index_add(0, self.other, 1 - self.keep) / C

    def draw(
        self, *shape: int, generator: Generator | None = None
    ) -> Int64[Tensor, "..."]:
        """Draw classes, with replacement."""
        for size in shape:
            check_whole("AliasSampler.draw: shape", size, 0)
        cell = torch.randint(len(self.keep), shape, generator=generator)
        coin = torch.rand(shape, generator=generator, dtype=torch.double)
        return torch.where(coin < self.keep[cell], cell, self.other[cell])


def importance_weights(
    o: Float[Tensor, "*B k"], log_q: Float[Tensor, "*#B k"]
) -> Float[Tensor, "*B k"]:
    r"""Return the normalised importance weights of draws from a noise distribution.

    They are :math:`\propto e^{o_i} / q_i`, with the sum one.

    With them the mean of :math:`f` over the draws from :math:`q` estimates its mean under
    :math:`\operatorname{softmax}(o)`.

    Args:
        o: scores :math:`o_i` of the draws.
        log_q: log-probabilities :math:`\log q_i` of the draws.

    Example:
        >>> importance_weights(torch.zeros(2), torch.tensor([0.25, 0.75]).log())
        tensor([0.7500, 0.2500])
    """
    _check_draws("importance_weights", o)
    return torch.softmax(o - log_q, dim=-1)


def importance_loss(
    o_y: Float[Tensor, "B"], o: Float[Tensor, "B k"], log_q: Float[Tensor, "#B k"]
) -> Float[Tensor, "B"]:
    r"""Return the cross-entropy with an estimate of the normaliser from draws.

    It is :math:`\log \hat Z - o_y` with
    :math:`\hat Z = \frac1k \sum_i e^{o_i} / q_i`.

    Its gradient is :math:`-\nabla o_y + \sum_i \omega_i \nabla o_i` with the weights of
    :func:`importance_weights` (Bengio and Senécal 2003).

    Equals ``torch.nn.functional.cross_entropy`` if each class is drawn once, uniformly.

    Args:
        o_y: scores of the classes :math:`y`.
        o: scores of the draws.
        log_q: log-probabilities of the draws.

    Example:
        >>> log_q = torch.tensor([[0.5, 0.5]]).log()
        >>> importance_loss(torch.zeros(1), torch.zeros(1, 2), log_q)  # log 2
        tensor([0.6931])
    """
    k = _check_draws("importance_loss", o, o_y)
    return torch.logsumexp(o - log_q, dim=-1) - log(k) - o_y


def anchored_loss(
    o_y: Float[Tensor, "B"],
    o: Float[Tensor, "B k"],
    log_q: Float[Tensor, "#B k"],
    hit: Bool[Tensor, "B k"],
) -> Float[Tensor, "B"]:
    r"""Return the sampled cross-entropy in which the true class is always counted.

    It is :math:`\log \hat Z - o_y`, where the draws estimate the other terms only:
    :math:`\hat Z = e^{o_y} + \frac1k \sum_{c_i \ne y} e^{o_i} / q_i`. This is unbiased
    too, and never less than :math:`e^{o_y}`, so that the loss cannot fall below zero.

    Args:
        o_y: scores of the classes :math:`y`.
        o: scores of the draws.
        log_q: log-probabilities of the draws.
        hit: where a draw is :math:`y` itself.

    Example:
        >>> log_q, hit = torch.tensor([[0.5]]).log(), torch.tensor([[False]])
        >>> anchored_loss(torch.zeros(1), torch.zeros(1, 1), log_q, hit)  # log(1 + 2)
        tensor([1.0986])
    """
    k = _check_draws("anchored_loss", o, o_y)
    rest = (o - log_q - log(k)).masked_fill(hit, -torch.inf)
    terms = torch.cat([o_y[:, None], rest], dim=1)
    return torch.logsumexp(terms, dim=1) - o_y


def negative_sampling_loss(
    o_y: Float[Tensor, "B"], o: Float[Tensor, "B k"]
) -> Float[Tensor, "B"]:
    r"""Return the loss of negative sampling (Mikolov et al. 2013).

    .. math:: -\log \sigma(o_y) - \textstyle\sum_i \log \sigma(-o_i)

    Its optimum is :math:`o_c = \log \frac{p_c}{k\, q_c}`: no log-probability.

    Equals ``torch.nn.functional.binary_cross_entropy_with_logits``, summed over
    :math:`y` (label 1) and the draws (label 0).

    Args:
        o_y: scores of the classes :math:`y`.
        o: scores of the draws.

    Example:
        >>> negative_sampling_loss(torch.zeros(1), torch.zeros(1, 2))  # 3 log 2
        tensor([2.0794])
    """
    _check_draws("negative_sampling_loss", o, o_y)
    return -logsigmoid(o_y) - logsigmoid(-o).sum(-1)


def nce_loss(
    o_y: Float[Tensor, "B"],
    log_q_y: Float[Tensor, "B"],
    o: Float[Tensor, "B k"],
    log_q: Float[Tensor, "#B k"],
) -> Float[Tensor, "B"]:
    r"""Return the loss of noise-contrastive estimation (Gutmann and Hyvärinen 2010).

    One class comes from the data and :math:`k` from the noise; which is which? The model
    says *data* with the log-odds :math:`s_c = o_c - \log(k\, q_c)`, and the loss is
    :math:`-\log \sigma(s_y) - \sum_i \log \sigma(-s_i)`. Its optimum is
    :math:`o_c = \log p_c`.

    Args:
        o_y: scores of the classes :math:`y`.
        log_q_y: log-probabilities of these classes under the noise.
        o: scores of the draws.
        log_q: log-probabilities of the draws.

    Example:
        >>> half = torch.tensor([0.5]).log()
        >>> nce_loss(half, half, half[None], half[None])  # all log-odds 0: 2 log 2
        tensor([1.3863])
    """
    k = _check_draws("nce_loss", o, o_y)
    return negative_sampling_loss(o_y - log_q_y - log(k), o - log_q - log(k))


def _check_draws(who: str, o: Tensor, o_y: Tensor | None = None) -> int:
    """Refuse draws that are none, or do not fit; return their number."""
    k = o.shape[-1] if o.ndim else 0
    check(k > 0, f"{who}: o", "have at least one draw", f"shape {tuple(o.shape)}")
    if o_y is not None:
        check_shape(f"{who}: o", o, *o_y.shape, None)
    return k
