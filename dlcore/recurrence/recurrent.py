r"""Recurrent networks: one cell, run along a sequence, that hands its state to itself.

Sequences are tensors of shape (B, T, D). Those of a batch may be of different lengths;
what stands behind the end of one is never looked at.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from jaxtyping import Bool, Float, Int

from dlcore._torch import Generator, Tensor, linear, nn, torch
from dlcore.checks import check, check_whole

State: TypeAlias = tuple[Float[Tensor, "B H"], ...]
BLOCK = 16  # steps of an LSTM on its way back: few calls, and little memory


class Recurrent(nn.Module):
    r"""A layer :math:`h_t = F(h_{t-1}, x_t)`; subclasses say what a step is.

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
    """

    blocks = 1  # parts of the cell that see input and state
    states = 1  # tensors that are handed on

    def __init__(
        self, inputs: int, hidden: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        who = type(self).__name__
        check_whole(f"{who}: inputs", inputs, 1)
        check_whole(f"{who}: hidden", hidden, 1)
        self.hidden = hidden

        def uniform(*shape: int) -> Tensor:
            draws = torch.rand(shape, generator=generator)
            return (2 * draws - 1) / hidden**0.5

        self.V = nn.Parameter(uniform(self.blocks * hidden, inputs))
        self.U = nn.Parameter(uniform(self.blocks * hidden, hidden))
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
        mask = self._check(x, lengths, state)
        if state is None:
            zeros = x.new_zeros(len(x), self.hidden)
            state = (zeros,) * self.states
        if mask is not None:
            x = x.masked_fill(~mask[:, :, None], 0)
        z = linear(x.transpose(0, 1), self.V, self.b)
        h, state = self._along(z, state, mask)
        h = h.transpose(0, 1)
        return h if mask is None else h * mask[:, :, None], state

    def _along(
        self, z: Float[Tensor, "T B G"], state: State, mask: Tensor | None
    ) -> tuple[Float[Tensor, "T B H"], State]:
        """Take all steps; return the outputs, and the state where a sequence ends."""
        outputs = []
        for t, now in enumerate(z):
            new = self.step(now, state)
            if mask is not None:
                going = mask[:, t, None]
                new = tuple(
                    torch.where(going, after, before)
                    for after, before in zip(new, state, strict=True)
                )
            state = new
            outputs.append(state[0])
        return torch.stack(outputs), state

    def _check(
        self, x: Tensor, lengths: Tensor | None, state: State | None
    ) -> Tensor | None:
        """Refuse what does not fit; return where the sequences are."""
        who, inputs = type(self).__name__, self.V.shape[1]
        check(
            x.ndim == 3 and x.shape[1] > 0 and x.shape[2] == inputs,
            f"{who}: x",
            f"have the axes (B, T, {inputs}) with at least one time",
            f"shape {tuple(x.shape)}",
        )
        shape = (len(x), self.hidden)
        check(
            state is None or [tuple(s.shape) for s in state] == [shape] * self.states,
            f"{who}: state",
            f"have {self.states} of the shape {shape}",
            None if state is None else [tuple(s.shape) for s in state],
        )
        return None if lengths is None else _mask(who, x, lengths)


class RNN(Recurrent):
    r"""The network of Elman (1990), :math:`h_t = \varphi(U h_{t-1} + V x_t + b)`.

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        phi: the activation function :math:`\varphi`.
        generator: source of the weights.
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

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        forget_bias: first value of :math:`b_f`; the gate starts open.
        generator: source of the weights.
    """

    blocks, states = 4, 2
    forget = 1  # the block of the forget gate

    def __init__(
        self,
        inputs: int,
        hidden: int,
        forget_bias: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden, generator)
        with torch.no_grad():
            self.b.view(self.blocks, hidden)[self.forget] = forget_bias

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        return _remember(torch.addmm(z, h, self.U.T), c)

    def _along(
        self, z: Tensor, state: State, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        if type(self).step is not LSTM.step:  # a cell of its own
            return super()._along(z, state, mask)
        h, c, *_ = _Steps.apply(z, self.U, *state)  # type: ignore[no-untyped-call]
        if mask is None:
            return h, (h[-1], c[-1])
        ends = mask.sum(1) - 1, torch.arange(len(mask), device=mask.device)
        return h, (h[ends], c[ends])


def _remember(
    sums: Float[Tensor, "B G"], c: Float[Tensor, "B H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return output and cell of an LSTM, given the sums in its four parts."""
    i, f, candidate, o = sums.chunk(4, dim=1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(candidate)
    return torch.sigmoid(o) * torch.tanh(c), c


class _Steps(torch.autograd.Function):
    r"""All steps of an LSTM, with its backpropagation through time written out.

    The derivatives of the loss by :math:`h_t` and :math:`c_t` along all ways are

    .. math::
        \delta^h_t &= \partial_{h_t} + U^\top \delta^z_{t+1} \\
        \delta^c_t &= \partial_{c_t} + f_{t+1} \odot \delta^c_{t+1}
            + \delta^h_t \odot o_t \odot (1 - \tanh^2 c_t)

    with :math:`\partial` for what comes from outside. Those by the sums :math:`z_t` are
    these two times factors that are known before the way back begins, computed here for
    ``BLOCK`` steps at once; and that by :math:`U` is one product at its end.
    """

    @staticmethod
    def forward(z: Tensor, U: Tensor, h: Tensor, c: Tensor) -> Any:
        H, U_t = U.shape[1], U.T
        gates = torch.empty_like(z)
        hs, cs, tanhs = (z.new_empty(*z.shape[:2], H) for _ in range(3))
        for now, sums, h_t, c_t, tanh in zip(z, gates, hs, cs, tanhs, strict=True):
            torch.addmm(now, h, U_t, out=sums)
            i, f, candidate, o = sums.chunk(4, dim=1)
            sums[:, : 2 * H].sigmoid_()  # i and f
            candidate.tanh_()
            o.sigmoid_()
            c = torch.mul(f, c, out=c_t).addcmul_(i, candidate)
            h = torch.mul(o, torch.tanh(c, out=tanh), out=h_t)
        return hs, cs, gates, tanhs

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, *output)
        ctx.save_for_forward(*inputs)
        ctx.mark_non_differentiable(*output[2:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, by_h: Tensor | None, by_c: Tensor | None, *_: Any) -> Any:
        z, U, h, c, hs, cs, gates, tanhs = ctx.saved_tensors
        nothing = z.new_zeros(()).expand_as(hs)
        by_h = nothing if by_h is None else by_h
        by_c = nothing if by_c is None else by_c
        if torch.is_grad_enabled():  # to be differentiated again
            return torch.func.vjp(_step_by_step, z, U, h, c)[1]((by_h, by_c))
        dz, past = torch.empty_like(gates), torch.cat([c[None], cs[:-1]])
        dh, dc, one = by_h[-1], by_c[-1], z.new_ones(())
        for start in reversed(range(0, len(z), BLOCK)):
            some = slice(start, start + BLOCK)
            parts, tanh = dz[some].unflatten(2, (4, -1)), tanhs[some]
            i, f, candidate, o = gates[some].unflatten(2, (4, -1)).unbind(2)
            torch.mul(candidate, _less(i, i), out=parts[:, :, 0])
            torch.mul(past[some], _less(f, f), out=parts[:, :, 1])
            torch.mul(i, _less(one, candidate), out=parts[:, :, 2])
            torch.mul(tanh, _less(o, o), out=parts[:, :, 3])
            steps = zip(parts, o * _less(one, tanh), f, strict=True)
            for t, (part, to_c, f_t) in reversed([*enumerate(steps, start)]):
                dc = torch.addcmul(dc, dh, to_c)
                part[:, :3] *= dc[:, None]
                part[:, 3] *= dh
                dh, dc = dz[t] @ U, f_t * dc
                if t > 0:
                    dh += by_h[t - 1]
                    dc += by_c[t - 1]
        dU = dz[0].T @ h + dz[1:].flatten(0, 1).T @ hs[:-1].flatten(0, 1)
        return dz, dU, dh, dc

    @staticmethod
    def vmap(_: Any, in_dims: Any, *inputs: Tensor) -> Any:
        hs, cs = torch.vmap(_step_by_step, in_dims)(*inputs)
        return (hs, cs, hs, cs), (0, 0, 0, 0)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        inputs = ctx.saved_tensors
        full = tuple(
            torch.zeros_like(x) if d is None else d
            for x, d in zip(inputs, tangents, strict=True)
        )
        return *torch.func.jvp(_step_by_step, inputs, full)[1], None, None


def _less(a: Tensor, x: Tensor) -> Tensor:
    """Return a - x², in one go; with a = x or 1 the slope of a gate or a tanh."""
    return torch.addcmul(a, x, x, value=-1)


def _step_by_step(z: Tensor, U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs and cells of an LSTM, with a graph of every step."""
    outputs, cells = [], []
    for now in z:
        h, c = _remember(torch.addmm(now, h, U.T), c)
        outputs.append(h)
        cells.append(c)
    return torch.stack(outputs), torch.stack(cells)


class CoupledLSTM(LSTM):
    r"""An LSTM that takes in as much as it forgets: :math:`i = 1 - f`.

    .. math:: c_t = f \odot c_{t-1} + (1 - f) \odot \tilde c

    Blocks of rows are :math:`f, \tilde c, o`.
    """

    blocks, forget = 3, 0

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        f, candidate, o = (z + h @ self.U.T).chunk(3, dim=1)
        c = torch.lerp(torch.tanh(candidate), c, torch.sigmoid(f))
        return torch.sigmoid(o) * torch.tanh(c), c


class PeepholeLSTM(LSTM):
    r"""An LSTM whose gates see the cell, each entry its own (Gers, Schmidhuber 2000).

    To the sums of :math:`i` and :math:`f` is added :math:`p_{i,f} \odot c_{t-1}`, to that of
    :math:`o` :math:`p_o \odot c_t`.

    Attributes:
        p: the weights :math:`p_i, p_f, p_o`, 0 at first.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        forget_bias: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(inputs, hidden, forget_bias, generator)
        self.p = nn.Parameter(torch.zeros(3, hidden))

    def step(self, z: Tensor, state: State) -> State:  # noqa: D102
        h, c = state
        i, f, candidate, o = torch.addmm(z, h, self.U.T).chunk(4, dim=1)
        i, f = (
            torch.sigmoid(i + self.p[0] * c),
            torch.sigmoid(f + self.p[1] * c),
        )
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

    Args:
        inputs: numbers :math:`x_t` has.
        hidden: numbers :math:`h_t` has.
        reset: ``"after"`` or ``"before"`` the product with :math:`U_h`.
        generator: source of the weights.

    Attributes:
        d: the inner biases, 0 at first; none with ``"before"``.
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
        ways = ("after", "before")
        check(reset in ways, "GRU: reset", f"be one of {ways}", repr(reset))
        after = nn.Parameter(torch.zeros(hidden))
        self.d = after if reset == "after" else None

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
    """Two layers, one along the sequence and one against it, side by side.

    Args:
        along: reads from the first to the last.
        against: reads from the last to the first.
    """

    def __init__(self, along: Recurrent, against: Recurrent) -> None:
        super().__init__()
        self.along, self.against = along, against

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        lengths: Int[Tensor, "B"] | None = None,
    ) -> tuple[Float[Tensor, "B T K"], State]:
        """Return the outputs of both, joined, and both states at their ends."""
        ahead, end = self.along(x, lengths)
        back, start = self.against(reversed_within(x, lengths), lengths)
        h = torch.cat([ahead, reversed_within(back, lengths)], dim=2)
        return h, (*end, *start)


class Stacked(nn.Module):
    """Layers on top of each other: each reads the outputs of the one below."""

    def __init__(self, layers: Sequence[Recurrent | Bidirectional]) -> None:
        super().__init__()
        check(len(layers) > 0, "Stacked: layers", "not be empty", "none")
        self.layers = nn.ModuleList(layers)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        lengths: Int[Tensor, "B"] | None = None,
    ) -> tuple[Float[Tensor, "B T K"], list[State]]:
        """Return the outputs of the last layer, and the states of all at the end."""
        states = []
        for layer in self.layers:
            x, state = layer(x, lengths)
            states.append(state)
        return x, states


def length_mask(
    lengths: Int[Tensor, "B"], T: int, who: str = "until"
) -> Bool[Tensor, "B T"]:
    """Return the mask of sequences: True where there is something to look at."""
    kind, shape = lengths.dtype, tuple(lengths.shape)
    fraction = lengths.is_floating_point() or lengths.is_complex()
    whole = lengths.ndim == 1 and not fraction and kind != torch.bool
    rule = "be whole numbers in a row"
    check(whole, f"{who}: lengths", rule, f"{kind} of the shape {shape}")
    ok = bool(((lengths >= 1) & (lengths <= T)).all())
    rule = f"lie between 1 and {T}"
    check(ok, f"{who}: lengths", rule, lengths.tolist())
    return torch.arange(T, device=lengths.device) < lengths[:, None]


def reversed_within(
    x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None
) -> Float[Tensor, "B T D"]:
    """Turn each sequence around, within its length; the rest stays where it is."""
    if lengths is None:
        return x.flip(1)
    t = torch.arange(x.shape[1], device=x.device)
    mask = _mask("turned", x, lengths)
    places = torch.where(mask, lengths[:, None] - 1 - t, t)
    return x.gather(1, places[:, :, None].expand_as(x))


def _mask(who: str, x: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of the sequences in ``x``; refuse too few or too many lengths."""
    mask = length_mask(lengths, x.shape[1], who)
    rule = f"be as many as the sequences, {len(x)}"
    check(len(mask) == len(x), f"{who}: lengths", rule, len(mask))
    return mask
