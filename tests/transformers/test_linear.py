import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import fixed

from dlcore.transformers.attention import MultiHeadAttention
from dlcore.transformers.bert import BERT, ClassHead, MaskedHead, SpanHead
from dlcore.transformers.blocks import Block, FeedForward
from dlcore.transformers.gpt import GPT
from dlcore.transformers.linear import Linear
from dlcore.transformers.transformer import Transformer
from dlcore.transformers.vit import ViT

sizes = st.integers(1, 40)


@given(st.integers(0, 99), sizes, sizes, st.booleans())
def test_first_weights_are_those_of_torch(seed, n, m, bias):
    ours = Linear(n, m, bias, fixed(seed))
    torch.manual_seed(seed)
    theirs = nn.Linear(n, m, bias)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, weights in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], weights)


@given(seeds, sizes, sizes)
def test_values_are_those_of_the_formula(rng, n, m):
    layer, x = Linear(n, m), torch.tensor(rng.normal(size=(2, 3, n))).float()
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)


@pytest.mark.parametrize(
    "make",
    [
        lambda g: Linear(3, 2, generator=g),
        lambda g: MultiHeadAttention(8, 2, generator=g),
        lambda g: FeedForward(8, 5, generator=g),
        lambda g: Block(8, 2, cross=True, generator=g),
        lambda g: Transformer(7, 5, 8, 2, 1, places=6, generator=g),
        lambda g: GPT(7, 6, 8, 2, 1, generator=g),
        lambda g: BERT(7, 6, 8, 2, 1, generator=g),
        lambda g: MaskedHead(BERT(7, 6, 8, 2, 1, generator=g), g),
        lambda g: ClassHead(8, 2, generator=g),
        lambda g: SpanHead(8, g),
        lambda g: ViT(4, 2, 3, 8, 2, 1, generator=g),
    ],
)
def test_weights_come_from_the_generator_alone(make):
    before = torch.get_rng_state()
    one, same, other = (make(fixed(seed)).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    drawn = [name for name in one if not torch.equal(one[name], other[name])]
    assert all(torch.equal(one[name], same[name]) for name in one)
    known = "norm|class_token|change.2|^c$"
    assert {*drawn} == {name for name in one if not re.search(known, name)}


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (2.0, 2)])
def test_refuses_what_is_no_size(sizes, unchecked):
    with pytest.raises(ValueError, match="puts must be a whole number from 1 on"):
        Linear(*sizes)
