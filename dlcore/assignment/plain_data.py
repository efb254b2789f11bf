"""Plain data: values that may travel between programs that do not trust each other.

A plain value is ``None``, a truth value, a number, a text, a NumPy array, a torch
tensor, or a list, tuple or dictionary of plain values. ``encode`` turns it into what
JSON can hold, ``decode`` back. Only exact types are plain: an instance of a subclass
may behave as it likes, and is refused. Torch is loaded only to decode a tensor.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from dlcore.checks import check

__all__ = [
    "DTYPES",
    "MAX_TEXT",
    "Json",
    "Outcome",
    "Tensor",
    "call",
    "decode",
    "encode",
]

_MAX_DEPTH = 8  # lists within lists
_MAX_ITEMS = 100_000  # numbers, texts and containers in one value
#: How many characters a text may have.
MAX_TEXT = 10_000
_MAX_DIGITS = 300  # decimal digits of a whole number
#: Names of the types of numbers that arrays and tensors may hold.
DTYPES = {
    *("bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
}

_SCALARS = {np.dtype(name).type for name in DTYPES}

#: What the json module reads and writes.
Json = Any


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor as plain numbers, where torch is not needed.

    Attributes:
        values: its numbers.

    Example:
        >>> decode(encode(torch.ones(2)), tensors=False).values.tolist()
        [1.0, 1.0]
    """

    values: ndarray


class Outcome(NamedTuple):
    """The outcome of a call: a plain value, or the reason why there is none.

    Attributes:
        value: the encoded answer; ``None`` is also what a failed call leaves here.
        raised: the name of the exception's type, if there was one.
        why: a sentence, if the call failed or its answer is not plain.

    Example:
        >>> call(lambda x: 1 / x, [0])[0].raised
        'ZeroDivisionError'
    """

    value: Json = None
    raised: str = ""
    why: str = ""


def encode(value: object) -> Json:
    """Encode a plain value as JSON; refuse any other with a sentence.

    Example:
        >>> encode((1, np.array([2.5])))
        {'tuple': [1, {'array': ['float64', [1], [2.5]]}]}
    """
    return _encode(value, 0, [_MAX_ITEMS])


def decode(data: Json, tensors: bool = True) -> Any:
    """Decode a value that :func:`encode` made, or refuse with a sentence.

    Args:
        data: what ``encode`` gave, or what an untrusted program claims it gave.
        tensors: make torch tensors; otherwise keep them as :class:`Tensor`.

    Example:
        >>> decode({"tuple": [1, {"array": ["float64", [1], [2.5]]}]})
        (1, array([2.5]))
    """
    return _decode(data, tensors, 0, [_MAX_ITEMS])


def call(
    function: Callable[..., object], arguments: Json
) -> tuple[Outcome, Exception | None]:
    """Call a function on fresh copies of encoded arguments.

    Returns:
        The outcome, and the exception that the function raised, if it raised one.

    Example:
        >>> call(divmod, [7, 2])[0].value
        {'tuple': [3, 1]}
    """
    values = decode(arguments)
    try:
        answer = function(*values)
    except Exception as error:
        kind = type(error).__name__
        return Outcome(raised=kind, why=f"{kind}: {error}"[:MAX_TEXT]), error
    try:
        return Outcome(value=encode(answer)), None
    except ValueError as error:
        return Outcome(why=str(error)), None


def _encode(value: Any, depth: int, room: list[int]) -> Json:
    _count(depth, room, 1)
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if kind is int:
        _check_whole(value)
        return value
    if kind is str:
        _check_text(value)
        return value
    if kind is list:
        return [_encode(item, depth + 1, room) for item in value]
    if kind is tuple:
        return {"tuple": [_encode(item, depth + 1, room) for item in value]}
    if kind is dict:
        pairs = [list(pair) for pair in value.items()]
        return {"dict": [_encode(pair, depth + 1, room) for pair in pairs]}
    return _encode_array(value, room)


def _encode_array(value: Any, room: list[int]) -> Json:
    kind = type(value)
    if kind is ndarray or kind in _SCALARS or kind is complex:
        return {"array": _numbers(np.asarray(value), room)}
    torch = sys.modules.get("torch")
    check(
        torch is not None and kind in (torch.Tensor, torch.nn.Parameter),
        "An answer",
        "be made of numbers, texts, lists, arrays and tensors",
        f"an object of the type {kind.__name__[:40]}",
    )
    return {"tensor": _numbers(_from_torch(value, torch), room)}


def _from_torch(tensor: Any, torch: Any) -> ndarray:
    plain = tensor.detach()
    ok = plain.layout is torch.strided and plain.device.type == "cpu"
    check(ok, "A tensor", "be dense and on the CPU", f"{plain.layout}")
    name = str(plain.dtype).removeprefix("torch.")
    check(name in DTYPES, "A tensor", "hold numbers NumPy knows", name)
    return plain.resolve_conj().resolve_neg().numpy()


def _numbers(array: ndarray, room: list[int]) -> Json:
    name = array.dtype.name
    check(name in DTYPES, "An array", "hold numbers", f"the type {name}")
    _count(0, room, array.size)
    flat = array.ravel()
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], axis=-1).ravel()
    return [name, list(array.shape), flat.tolist()]


def _decode(data: Json, tensors: bool, depth: int, room: list[int]) -> Any:
    _count(depth, room, 1)
    if data is None or type(data) in (bool, float):
        return data
    if type(data) is int:
        _check_whole(data)
        return data
    if type(data) is str:
        _check_text(data)
        return data
    if type(data) is list:
        return [_decode(item, tensors, depth + 1, room) for item in data]
    ok = type(data) is dict and len(data) == 1
    check(ok, "Plain data", "have one of the known forms", f"{type(data)}")
    ((form, body),) = data.items()
    check(type(body) is list, "Plain data", f"list its {form}", f"{type(body)}")
    if form == "tuple":
        return tuple(_decode(item, tensors, depth + 1, room) for item in body)
    if form == "dict":
        return _decode_dict(body, tensors, depth, room)
    check(form in ("array", "tensor"), "Plain data", "be known", repr(form))
    array = _array(body, room)
    if form == "array":
        return array
    return _to_torch(array) if tensors else Tensor(array)


def _decode_dict(
    body: list[Json], tensors: bool, depth: int, room: list[int]
) -> dict[Any, Any]:
    pairs = [_decode(pair, tensors, depth + 1, room) for pair in body]
    ok = all(type(pair) is list and len(pair) == 2 for pair in pairs)
    check(ok, "A dictionary", "consist of pairs", "something else")
    simple = all(type(key) in (str, int, bool, float) for key, _ in pairs)
    check(simple, "A dictionary", "have numbers and texts as keys", "others")
    return dict(pairs)


def _array(body: list[Json], room: list[int]) -> ndarray:
    check(len(body) == 3, "An array", "have type, shape and numbers", len(body))
    name, shape, numbers = body
    known = type(name) is str and name in DTYPES
    check(known, "An array", "hold numbers", repr(name)[:40])
    lists = type(shape) is list and type(numbers) is list
    check(lists, "An array", "list its shape and numbers", "something else")
    ok = len(shape) <= _MAX_DEPTH and all(
        type(n) is int and 0 <= n <= _MAX_ITEMS for n in shape
    )
    check(ok, "A shape", "be made of sizes", repr(shape)[:40])
    _count(0, room, len(numbers))
    plain = all(type(number) in (bool, int, float) for number in numbers)
    check(plain, "An array", "hold numbers", "other things")
    pairs = name.startswith("complex")
    size = math.prod(shape) * (2 if pairs else 1)
    check(len(numbers) == size, "An array", "fill its shape", len(numbers))
    try:
        with np.errstate(over="ignore"):
            flat = np.array(numbers, dtype="float64" if pairs else name)
            flat = flat.view("complex128").astype(name) if pairs else flat
    except OverflowError:
        raise ValueError(f"An array must hold numbers that {name} can.") from None
    return flat.reshape(shape)


def _to_torch(array: ndarray) -> Any:
    from dlcore._torch import torch

    return torch.from_numpy(array)


def _count(depth: int, room: list[int], items: int) -> None:
    check(depth <= _MAX_DEPTH, "Plain data", f"nest ≤ {_MAX_DEPTH} deep", "more")
    room[0] -= items
    check(room[0] >= 0, "Plain data", f"have ≤ {_MAX_ITEMS} items", "more")


def _check_text(text: str) -> None:
    short = len(text) <= MAX_TEXT
    check(short, "A text", f"have ≤ {MAX_TEXT} characters", len(text))


def _check_whole(number: int) -> None:
    ok = abs(number) < 10**_MAX_DIGITS
    check(ok, "A whole number", f"have ≤ {_MAX_DIGITS} digits", "more")
