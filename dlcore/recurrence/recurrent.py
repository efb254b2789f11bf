r"""Recurrent networks: one cell, run along a sequence, that hands its state to itself.

Sequences are tensors of shape (B, T, D). Those of a batch may be of different lengths;
what stands behind the end of one is never looked at.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxtyping import Bool, Float, Int

from dlcore._torch import Generator, Tensor, linear, nn, torch
from dlcore.checks import check, check_one_of, check_shape, check_sizes

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Bidirectional",
    "CoupledLSTM",
    "PeepholeLSTM",
    "Recurrent",
    "Stacked",
    "State",
    "check_run",
    "length_mask",
    "reversed_within",
    "uniform",
]

#: The state of a recurrent layer: one or more tensors, with a row for each sequence.
State: TypeAlias = tuple[Float[Tensor, "B H"], ...]


class Recurrent(nn.Module):
    r"""A recurrent layer, run along sequences; subclasses define a step.

    A step is :math:`h_t = F(h_{t-1}, x_t)`.

    All of them see the input through :math:`Vx_t + b`, which is computed for all times at
    once, and the past through :math:`U h_{t-1}`.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        generator: source of the weights, drawn uniformly between
            :math:`\pm 1 / \sqrt{\text{hidden}}`; biases are 0.

    Attributes:
        V: weights of the input, a block of ``hidden`` rows for each part of the cell.
        U: weights of the state, in the same blocks.
        b: biases.

    Example:
        >>> layer, x = RNN(2, 3), torch.ones(1, 5, 2)
        >>> h, state = layer(x)
        >>> torch.equal(h[:, -1], state[0])
        True
    """

    blocks = 1  # parts of the cell that see input and state
    states = 1  # tensors that are handed on

    def __init__(
        self, inputs: int, hidden: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        check_sizes(type(self).__name__, inputs=inputs, hidden=hidden)
        self.hidden = hidden
        self.V = uniform(hidden, (self.blocks * hidden, inputs), generator)
        self.U = uniform(hidden, (self.blocks * hidden, hidden), generator)
        self.b = nn.Parameter(torch.zeros(self.blocks * hidden))

    def step(self, z: Float[Tensor, "B G"], state: State) -> State:
        """Return the next state, given :math:`z = Vx_t + b`; its first part is h."""
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        lengths: Int[Tensor, "B"] | None = None,
        state: State | None = None,
    ) -> tuple[Float[Tensor, "B T H"], State]:
        """Run along sequences.

        Args:
            x: the inputs.
            lengths: of the sequences; without them, all are as long as ``x``.
            state: at the start; without it, zeros.

        Returns:
            The outputs :math:`h_t`, zero behind the end of a sequence, and the state at
            its end.
        """
        who = type(self).__name__
        check_run(who, x, self.V.shape[1], state, [self.hidden] * self.states)
        mask = None if lengths is None else _mask(who, x, lengths)
        if state is None:
            state = (x.new_zeros(len(x), self.hidden),) * self.states
        if mask is not None:
            x = x.masked_fill(~mask[:, :, None], 0)
        outputs = []
        for t, z in enumerate(linear(x.transpose(0, 1), self.V, self.b)):
            new = self.step(z, state)
            if mask is not None:
                going = mask[:, t, None]
                new = tuple(
                    torch.where(going, after, before)
                    for after, before in zip(new, state, strict=True)
                )
            state = new
            outputs.append(state[0])
        h = torch.stack(outputs).transpose(0, 1)
        return h if mask is None else h * mask[:, :, None], state


class RNN(Recurrent):
    r"""The simple recurrent network of Elman (1990).

    .. math:: h_t = \varphi(U h_{t-1} + V x_t + b)

    Equals ``torch.nn.RNN`` with ``batch_first=True``.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        phi: the activation function :math:`\varphi`.
        generator: source of the weights.

    Example:
        >>> layer = RNN(1, 1, phi=torch.relu)
        >>> layer.U.data, layer.V.data = torch.tensor([[0.5]]), torch.tensor([[1.0]])
        >>> layer(torch.ones(1, 3, 1))[0].flatten().tolist()
        [1.0, 1.5, 1.75]
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        phi: Callable[[Tensor], Tensor] = torch.tanh,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden, generator)
        self.phi = phi

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        (h,) = state
        return (self.phi(z + h @ self.U.T),)


class LSTM(Recurrent):
    r"""Long short-term memory (Hochreiter, Schmidhuber 1997; Gers et al. 2000).

    .. math::
        i, f, o &= \sigma(V_{i,f,o} x_t + U_{i,f,o} h_{t-1} + b_{i,f,o}) \\
        \tilde c &= \tanh(V_c x_t + U_c h_{t-1} + b_c) \\
        c_t &= f \odot c_{t-1} + i \odot \tilde c \\
        h_t &= o \odot \tanh c_t

    The state is :math:`(h_t, c_t)`; blocks of rows are :math:`i, f, \tilde c, o`, as in
    PyTorch.

    Equals ``torch.nn.LSTM`` with ``batch_first=True``.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        forget_bias: first value of :math:`b_f`; the gate starts open.
        generator: source of the weights.

    Example:
        >>> zero, one = torch.zeros(1, 1), torch.ones(1, 1)
        >>> _, (h, c) = LSTM(1, 1)(zero[None], state=(zero, one))
        >>> round(c.item(), 4)  # the forget gate is sigmoid(1)
        0.7311
    """

    blocks, states = 4, 2
    forget = 1  # the block of the forget gate
    peepholes = False  # whether the gates see the cell state

    def __init__(
        self,
        inputs: int,
        hidden: int,
        forget_bias: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden, generator)
        self.b.data.view(self.blocks, hidden)[self.forget] = forget_bias
        if self.peepholes:
            self.p = nn.Parameter(torch.zeros(3, hidden))

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        i, f, candidate, o = torch.addmm(z, h, self.U.T).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(candidate)
        return torch.sigmoid(o) * torch.tanh(c), c


class CoupledLSTM(LSTM):
    r"""An LSTM that takes in as much as it forgets: :math:`i = 1 - f`.

    .. math:: c_t = f \odot c_{t-1} + (1 - f) \odot \tilde c

    Blocks of rows are :math:`f, \tilde c, o`.

    Example:
        >>> zero, one = torch.zeros(1, 1), torch.ones(1, 1)
        >>> layer = CoupledLSTM(1, 1, forget_bias=0.0)
        >>> _, (h, c) = layer(zero[None], state=(zero, one))
        >>> c.item()  # half of the old cell, half of the candidate 0
        0.5
    """

    blocks, forget = 3, 0

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        f, candidate, o = (z + h @ self.U.T).chunk(3, dim=1)
        c = torch.lerp(torch.tanh(candidate), c, torch.sigmoid(f))
        return torch.sigmoid(o) * torch.tanh(c), c


class PeepholeLSTM(LSTM):
    r"""An LSTM whose gates also see the cell state (Gers, Schmidhuber 2000).

    To the sums of :math:`i` and :math:`f` is added :math:`p_{i,f} \odot c_{t-1}`, to that of
    :math:`o` :math:`p_o \odot c_t`.

    Attributes:
        p: the weights :math:`p_i, p_f, p_o`, 0 at first.

    Example:
        >>> layer, zero, one = PeepholeLSTM(1, 1), torch.zeros(1, 1), torch.ones(1, 1)
        >>> layer.p.data[1] = -1.0  # then f = sigmoid(1 - c)
        >>> layer(zero[None], state=(zero, one))[1][1].item()
        0.5
    """

    peepholes = True

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        i, f, candidate, o = torch.addmm(z, h, self.U.T).chunk(4, dim=1)
        i, f = (torch.sigmoid(i + self.p[0] * c), torch.sigmoid(f + self.p[1] * c))
        c = f * c + i * torch.tanh(candidate)
        return torch.sigmoid(o + self.p[2] * c) * torch.tanh(c), c


class GRU(Recurrent):
    r"""The gated recurrent unit (Cho et al. 2014), in two conventions.

    .. math::
        r, u &= \sigma(V_{r,u} x_t + U_{r,u} h_{t-1} + b_{r,u}) \\
        \tilde h &= \tanh(V_h x_t + b_h + r \odot (U_h h_{t-1} + d)) \\
        h_t &= u \odot h_{t-1} + (1 - u) \odot \tilde h

    This is ``reset="after"``, the convention of PyTorch. With ``"before"``, that of Cho et
    al., the reset gate stands inside: :math:`U_h (r \odot h_{t-1})`, without :math:`d`.

    Equals ``torch.nn.GRU`` with ``batch_first=True``, if ``reset="after"``.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        reset: ``"after"`` or ``"before"`` the product with :math:`U_h`.
        generator: source of the weights.

    Attributes:
        d: the inner biases, 0 at first; none with ``"before"``.

    Example:
        >>> layer, zero, one = GRU(1, 1), torch.zeros(1, 1), torch.ones(1, 1)
        >>> _ = layer.U.data.zero_()  # then u = 1/2, and the candidate is 0
        >>> layer(zero[None], state=(one,))[0].item()
        0.5
    """

    blocks = 3

    def __init__(
        self,
        inputs: int,
        hidden: int,
        reset: str = "after",
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden, generator)
        check_one_of("GRU: reset", reset, ["after", "before"])
        self.d = nn.Parameter(torch.zeros(hidden)) if reset == "after" else None

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        (h,) = state
        parts = [2 * self.hidden, self.hidden]  # both gates, the candidate
        z_ru, z_h = z.split(parts, dim=1)
        if self.d is not None:
            past_ru, past_h = (h @ self.U.T).split(parts, dim=1)
            r, u = torch.sigmoid(z_ru + past_ru).chunk(2, dim=1)
            candidate = torch.tanh(z_h + r * (past_h + self.d))
        else:
            U_ru, U_h = self.U.split(parts)
            r, u = torch.sigmoid(z_ru + h @ U_ru.T).chunk(2, dim=1)
            candidate = torch.tanh(z_h + (r * h) @ U_h.T)
        return (torch.lerp(candidate, h, u),)


class Bidirectional(nn.Module):
    """Two recurrent layers side by side, one of which reads from the end.

    Equals ``torch.nn.LSTM`` with ``bidirectional=True``, if both are such layers.

    Args:
        along: reads from the first to the last.
        against: reads from the last to the first.

    Example:
        >>> both, x = Bidirectional(RNN(1, 2), RNN(1, 2)), torch.ones(1, 3, 1)
        >>> h, _ = both(x)
        >>> torch.equal(h[:, :, :2], both.along(x)[0])
        True
    """

    def __init__(self, along: Recurrent, against: Recurrent) -> None:
        super().__init__()
        self.along, self.against = along, against

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B T K"], State]:
        """Return the outputs of both, joined, and both states at their ends."""
        ahead, end = self.along(x, lengths)
        back, start = self.against(reversed_within(x, lengths), lengths)
        h = torch.cat([ahead, reversed_within(back, lengths)], dim=2)
        return h, (*end, *start)


class Stacked(nn.Module):
    """Recurrent layers on top of each other: each reads the outputs of the one below.

    Equals ``torch.nn.LSTM`` with ``num_layers``, if all are such layers.

    Args:
        layers: the lowest first.

    Example:
        >>> net = Stacked([RNN(1, 2), RNN(2, 3)])
        >>> h, states = net(torch.ones(1, 4, 1))
        >>> torch.equal(h[:, -1], states[1][0])
        True
    """

    def __init__(self, layers: Sequence[Recurrent | Bidirectional]) -> None:
        super().__init__()
        check(len(layers) > 0, "Stacked: layers", "not be empty", "none")
        self.layers = nn.ModuleList(layers)

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B T K"], list[State]]:
        """Return the outputs of the last layer, and the states of all at the end."""
        states = []
        for layer in self.layers:
            x, state = layer(x, lengths)
            states.append(state)
        return x, states


def uniform(
    n: int, shape: tuple[int, ...], generator: Generator | None
) -> nn.Parameter:
    r"""Draw weights uniformly between :math:`\pm 1 / \sqrt n`.

    Example:
        >>> bool((uniform(4, (100,), None).abs() <= 0.5).all())
        True
    """
    draws = torch.rand(shape, generator=generator)
    return nn.Parameter((2 * draws - 1) / n**0.5)


def check_run(
    who: str,
    x: Tensor,
    inputs: int,
    state: tuple[Tensor, ...] | None,
    sizes: Sequence[int],
) -> None:
    """Refuse sequences and a first state that do not fit a recurrent layer.

    Args:
        who: name of the layer, for the message.
        x: the sequences.
        inputs: numbers each time should have.
        state: the first state, if there is one.
        sizes: widths of the parts of the state.

    Example:
        >>> check_run("RNN", torch.zeros(2, 5), 3, None, [4])
        Traceback (most recent call last):
            ...
        ValueError: RNN: x must have the axes (B, T, 3) ...; got shape (2, 5).
    """
    ok = x.ndim == 3 and x.shape[1] > 0 and x.shape[2] == inputs
    rule = f"have the axes (B, T, {inputs}) with at least one time"
    check(ok, f"{who}: x", rule, f"shape {tuple(x.shape)}")
    if state is not None:
        got, shapes = [tuple(s.shape) for s in state], [(len(x), n) for n in sizes]
        check(got == shapes, f"{who}: state", f"have parts of the shapes {shapes}", got)


def length_mask(
    lengths: Int[Tensor, "B"], T: int, who: str = "length_mask"
) -> Bool[Tensor, "B T"]:
    """Return the mask of padded sequences: True where there is something to look at.

    Example:
        >>> length_mask(torch.tensor([1, 3]), 3).int().tolist()
        [[1, 0, 0], [1, 1, 1]]
    """
    what, kind = f"{who}: lengths", lengths.dtype
    check_shape(what, lengths, None)
    whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    check(whole, what, "be whole numbers", kind)
    ok = bool(((lengths >= 1) & (lengths <= T)).all())
    check(ok, what, f"lie between 1 and {T}", lengths.tolist())
    return torch.arange(T, device=lengths.device) < lengths[:, None]


def reversed_within(
    x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None
) -> Float[Tensor, "B T D"]:
    """Reverse each sequence within its length; the padding stays where it is.

    Example:
        >>> x = torch.tensor([[[1.0], [2.0], [3.0], [0.0]]])
        >>> reversed_within(x, torch.tensor([3])).flatten().tolist()
        [3.0, 2.0, 1.0, 0.0]
    """
    if lengths is None:
        return x.flip(1)
    t = torch.arange(x.shape[1], device=x.device)
    mask = _mask("reversed_within", x, lengths)
    places = torch.where(mask, lengths[:, None] - 1 - t, t)
    return x.gather(1, places[:, :, None].expand_as(x))


def _mask(who: str, x: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of the sequences in ``x``; refuse too few or too many lengths."""
    mask = length_mask(lengths, x.shape[1], who)
    rule = f"be as many as the sequences, {len(x)}"
    check(len(mask) == len(x), f"{who}: lengths", rule, len(mask))
    return mask
