"""Tests of dlcore.recurrence.hierarchical_softmax."""

from itertools import pairwise
from math import log2

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from strategies import seeds

from dlcore.recurrence.hierarchical_softmax import (
    HierarchicalSoftmax,
    balanced,
    entropy_bits,
    expected_depth,
    huffman,
)

weights = st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(any)


def tree(codes, inputs=3, seed=0):
    source = torch.Generator().manual_seed(seed)
    net = HierarchicalSoftmax(inputs, codes, source).double()
    with torch.no_grad():
        net.b += torch.randn(len(codes) - 1, generator=source)
    return net


def inputs(rows, columns=3, seed=1):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=source, dtype=torch.float64)


def least_depth(weights):
    """Try every split of every subset."""
    best = {}
    full = (1 << len(weights)) - 1
    for part in range(1, full + 1):
        if part & (part - 1) == 0:
            best[part] = 0
            continue
        total = sum(w for i, w in enumerate(weights) if part >> i & 1)
        left, ways = (part - 1) & part, []
        while left:
            ways.append(best[left] + best[part ^ left])
            left = (left - 1) & part
        best[part] = total + min(ways)
    return best[full]


def test_huffman_by_hand():
    assert huffman([5, 2, 1, 1]) == ["1", "00", "010", "011"]
    assert huffman([1]) == [""]
    assert expected_depth([5, 2, 1, 1], huffman([5, 2, 1, 1])) == 15 / 9
    assert [len(code) for code in huffman([1] * 8)] == [3] * 8
    chain = huffman([2**c for c in range(6)])
    assert [len(code) for code in chain] == [5, 5, 4, 3, 2, 1]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8).filter(any))
def test_no_tree_is_less_deep_than_huffman(weights):
    codes = huffman(weights)
    depth = sum(w * len(code) for w, code in zip(weights, codes, strict=True))
    assert depth == least_depth(weights)


@given(weights)
def test_huffman_lies_within_a_bit_of_the_entropy(weights):
    depth, bits = (expected_depth(weights, huffman(weights)), entropy_bits(weights))
    assert bits <= depth + 1e-12
    if all(weights):
        assert depth < bits + 1


def test_huffman_of_many_classes_is_no_recursion():
    weights = [2.0**-c for c in range(900)]
    assert len(huffman(weights)[-1]) == 899


@given(st.integers(1, 40))
def test_balanced_trees_have_two_depths_at_most(C):
    codes = balanced(range(C))
    assert {len(code) for code in codes} <= {int(log2(C)), int(log2(C)) + 1}
    assert all(a < b for a, b in pairwise(codes))
    assert len(HierarchicalSoftmax(2, codes).W) == C - 1


def test_balanced_by_hand():
    assert balanced([2, 0, 1]) == ["01", "1", "00"]
    assert balanced(range(16))[0b0101] == "0101"


@given(weights, seeds)
def test_probabilities_have_the_sum_one(weights, rng):
    net = tree(huffman(weights), seed=int(rng.integers(1000)))
    z = inputs(4, seed=int(rng.integers(1000)))
    every = net.log_probabilities(z)
    assert torch.allclose(every.exp().sum(1), torch.ones(4).double())
    for c in range(len(weights)):
        one = net(z, torch.full((4,), c))
        assert torch.allclose(one, every[:, c], atol=1e-12)


def test_two_classes_are_logistic_regression():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    y[X[:, 0] > 0.5] = 1
    theirs = LogisticRegression(C=np.inf, tol=1e-9, max_iter=1000).fit(X, y)
    net = tree(["0", "1"])
    with torch.no_grad():
        net.W.copy_(torch.tensor(theirs.coef_))
        net.b.copy_(torch.tensor(theirs.intercept_))
    z, labels = torch.tensor(X), torch.tensor(y)
    ours = net.log_probabilities(z)
    expected = torch.tensor(theirs.predict_log_proba(X))
    assert torch.allclose(ours, expected)
    net(z, labels).mean().backward()
    assert net.W.grad.abs().max() < 1e-5
    assert net.b.grad.abs().max() < 1e-5


def test_parity_with_a_product_of_branches():
    net = tree(balanced(range(4)))
    z = inputs(1)
    right = torch.sigmoid(z @ net.W.T + net.b)[0]  # root, left, right
    by_hand = torch.stack(
        [
            (1 - right[0]) * (1 - right[1]),
            (1 - right[0]) * right[1],
            right[0] * (1 - right[2]),
            right[0] * right[2],
        ]
    )
    assert torch.allclose(net.log_probabilities(z).exp()[0], by_hand)
    ours = net(z, torch.tensor([1]))[0]
    ours.backward()
    grads = [net.W.grad.clone(), net.b.grad.clone()]
    net.zero_grad()
    by_hand[1].log().backward()
    for ours_, theirs in zip(grads, (net.W.grad, net.b.grad), strict=True):
        assert torch.allclose(ours_, theirs)


def test_gradient_touches_only_the_path():
    net = tree(balanced(range(16)))
    net(inputs(1), torch.tensor([0b0101])).sum().backward()
    assert int((net.W.grad != 0).any(1).sum()) == 4
    dense = net.W.grad
    rows = HierarchicalSoftmax(3, balanced(range(16)), sparse=True).double()
    rows.load_state_dict(net.state_dict())
    rows(inputs(1), torch.tensor([0b0101])).sum().backward()
    assert sorted(rows.W.grad.coalesce().indices()[0].tolist()) == [0, 1, 4, 9]
    assert torch.allclose(rows.W.grad.to_dense(), dense)


@given(weights, seeds)
def test_best_first_search_is_exact(weights, rng):
    net = tree(huffman(weights), seed=int(rng.integers(1000)))
    z = inputs(1, seed=int(rng.integers(1000)))
    every = net.log_probabilities(z)[0]
    label, log_p, visited = net.argmax(z[0])
    assert every[label] == every.max()
    assert log_p == pytest.approx(every.max().item(), abs=1e-12)
    assert visited <= len(weights) - 1


def test_best_first_search_is_not_greedy():
    net = HierarchicalSoftmax(1, ["00", "01", "1"]).double()
    with torch.no_grad():
        net.W.zero_()
        net.b.copy_(torch.tensor([0.4 / 0.6, 1.0]).log())
    label, log_p, visited = net.argmax(torch.zeros(1).double())
    assert (label, visited) == (2, 2)  # 0.3, 0.3, 0.4
    assert log_p == pytest.approx(np.log(0.4))


def test_samples_follow_the_probabilities():
    net = tree(huffman([5, 3, 2, 1, 1]))
    z = inputs(1).expand(20_000, 3)
    drawn = net.sample(z, torch.Generator().manual_seed(0))
    share = torch.bincount(drawn, minlength=5) / 20_000
    expected = net.log_probabilities(z[:1])[0].exp()
    assert (share - expected).abs().max() < 0.02


def test_one_class_is_certain():
    net = tree([""])
    z = inputs(2)
    assert net(z, torch.tensor([0, 0])).tolist() == [0, 0]
    assert net.log_probabilities(z).tolist() == [[0], [0]]
    assert net.argmax(z[0]) == (0, 0.0, 0)
    assert net.sample(z).tolist() == [0, 0]


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    with pytest.raises(ValueError, match=r"with a positive one; got \[\]"):
        huffman([])
    with pytest.raises(ValueError, match="not negative"):
        huffman([1, -1])
    with pytest.raises(ValueError, match="not negative"):
        entropy_bits([0, 0])
    with pytest.raises(ValueError, match="as many as the 2 weights"):
        expected_depth([1, 1], ["0"])
    with pytest.raises(ValueError, match="each of the classes"):
        balanced([0, 2])
    for codes, sentence in [
        ([], "0 different codes of 0"),
        (["0", "2"], "made of 0 and 1"),
        (["0", "01", "1"], r"not begin another code; got \['0'\]"),
        (["0", "10"], "two children"),
        (["0", "0", "1"], "2 different codes of 3"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            HierarchicalSoftmax(3, codes)
    net = tree(["0", "1"])
    with pytest.raises(ValueError, match=r"z must have the shape \(…, 3\)"):
        net.log_probabilities(inputs(2, 4))
    with pytest.raises(ValueError, match=r"y must lie between 0 and 1.*; got 2"):
        net(inputs(2), torch.tensor([0, 2]))
    with pytest.raises(
        ValueError, match=r"y must have the shape \(2,\); got shape \(1,\)"
    ):
        net(inputs(2), torch.tensor([0]))
