"""Weights as a page has them, and networks with just these weights."""

import base64
from copy import deepcopy

import numpy as np
import torch

from dlcore.figures.live import stored_weights


def floats(net):
    """Return weights as floats, which a page can read too."""

    def stored(p):
        numbers = p.numpy().astype("<f4").tobytes()
        return {"shape": [*p.shape], "f32": base64.b64encode(numbers).decode()}

    return {name: stored(p) for name, p in net.state_dict().items()}


def whole(net):
    """Return the network with the weights that a page has of whole numbers."""
    twin, parts = deepcopy(net), {}
    for name, stored in stored_weights(net.state_dict()).items():
        kind, form = ("i8", np.int8) if "i8" in stored else ("f32", "<f4")
        numbers = np.frombuffer(base64.b64decode(stored[kind]), form)
        numbers = numbers.reshape(stored["shape"]).astype(np.float64)
        if kind == "i8":
            scales = stored["scales"]
            if isinstance(scales, dict):
                scales = np.frombuffer(base64.b64decode(scales["f32"]), "<f4")
            numbers *= np.reshape(scales, (-1, *[1] * (numbers.ndim - 1)))
        parts[name] = torch.tensor(numbers)
    twin.load_state_dict(parts)
    return twin.eval()
