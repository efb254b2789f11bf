"""Tensors of PyTorch, and its layers with the weights of ours."""

import torch
from torch import nn


def normal(rng, *shape):
    return torch.tensor(rng.normal(size=shape))


def leaf(rng, *shape):
    """Draw what a gradient can be taken of."""
    return normal(rng, *shape).requires_grad_()


def tokens(rng, count, *shape):
    return torch.tensor(rng.integers(0, count, shape))


def fixed(seed=0):
    """Return a generator of PyTorch that starts anew."""
    return torch.Generator().manual_seed(seed)


def source(rng):
    """Return a generator of PyTorch that goes on where another one is."""
    return fixed(int(rng.integers(2**31)))


def randomised(module, rng, scale=1 / 3):
    """Give all weights of a module new values."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.tensor(rng.normal(size=p.shape) * scale))
    return module


@torch.no_grad()
def copy_layer(ours, theirs, end="l0"):
    """Give a recurrent layer the weights of ours; its second bias is at most d."""
    for name, value in [
        ("weight_ih", ours.V),
        ("weight_hh", ours.U),
        ("bias_ih", ours.b),
    ]:
        getattr(theirs, f"{name}_{end}").copy_(value)
    second = getattr(theirs, f"bias_hh_{end}").zero_()
    if getattr(ours, "d", None) is not None:
        second[2 * ours.hidden :] = ours.d


def copy_attention(ours, theirs):
    """Give an attention the weights of ours."""
    parts = [ours.W_Q, ours.W_K, ours.W_V]
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
    theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
    theirs.out_proj.load_state_dict(ours.W_O.state_dict())


@torch.no_grad()
def copy_block(ours, theirs):
    """Give a layer of a transformer the weights of ours."""
    copy_attention(ours.attention, theirs.self_attn)
    if ours.cross is not None:
        copy_attention(ours.cross, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[2].state_dict())
    for k, norm in enumerate(ours.norms):
        getattr(theirs, f"norm{k + 1}").load_state_dict(norm.state_dict())


def copy_stack(ours, theirs):
    """Give an encoder or a decoder the weights of a stack; it has no more norms."""
    for mine, other in zip(ours.blocks, theirs.layers, strict=True):
        copy_block(mine, other)
    if isinstance(ours.norm, nn.LayerNorm):
        theirs.norm.load_state_dict(ours.norm.state_dict())
    else:
        theirs.norm = None


def torch_encoder(stack):
    """Return an encoder of PyTorch like a stack whose norms stand first, with GELUs."""
    block = stack.blocks[0]
    D, d_ff = block.attention.d_model, len(block.feed_forward[0].weight)
    heads = block.attention.num_heads
    layer = nn.TransformerEncoderLayer(
        D, heads, d_ff, 0, "gelu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(
        layer, len(stack.blocks), norm=nn.LayerNorm(D), enable_nested_tensor=False
    ).to(block.norms[0].weight)
    copy_stack(stack, theirs)
    return theirs
