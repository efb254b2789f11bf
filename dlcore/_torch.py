"""PyTorch for the modules that compute with it, or a sentence that says how to get it."""

try:
    import torch
    from torch import Generator, Tensor, distributed, nn
    from torch.nn import functional
    from torch.nn.functional import embedding, linear, logsigmoid, softplus
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "This part of dlcore computes with PyTorch, which is not installed here. "
        "Install it with: pip install torch",
        name="torch",
    ) from None

__all__ = [
    "Generator",
    "Tensor",
    "distributed",
    "embedding",
    "functional",
    "linear",
    "logsigmoid",
    "nn",
    "softplus",
    "torch",
]
