import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose
from strategies import SEED

from dlcore.feedforward.losses import squared
from dlcore.feedforward.pca import pca


def cloud(s, n, seed):
    rng = default_rng(seed)
    return rng.normal(size=(s, n)) @ rng.normal(size=(n, n)) + rng.normal(size=n)


CLOUDS = st.builds(cloud, st.integers(2, 12), st.integers(1, 6), SEED)


@given(CLOUDS, st.data())
def test_agrees_with_scikit_learn(X, data):
    s, n = X.shape
    k = data.draw(st.integers(1, min(s, n)))
    ours, theirs = pca(X, k), sklearn.decomposition.PCA(k).fit(X)
    assert_allclose(ours.mean, theirs.mean_)
    assert_allclose(
        ours.variances[:k], theirs.explained_variance_ * (s - 1) / s, atol=1e-9
    )
    again = theirs.inverse_transform(theirs.transform(X))
    assert_allclose(ours(X), again, atol=1e-7)


@given(CLOUDS, st.data())
def test_no_other_flat_space_is_closer(X, data):
    n = X.shape[1]
    k = data.draw(st.integers(1, n))
    best = pca(X, k)
    assert_allclose(best.V @ best.V.T, np.eye(k), atol=1e-9)
    assert_allclose(squared(best(X), X).mean(), best.cost, atol=1e-9)
    rng = default_rng(data.draw(SEED))
    Q, _ = np.linalg.qr(rng.normal(size=(n, k)))
    c = X.mean(axis=0) + 0.1 * rng.normal(size=n)
    X_hat = c + (X - c) @ Q @ Q.T
    assert squared(X_hat, X).mean() >= best.cost - 1e-9


def test_four_points_by_hand():
    X = np.array([[8.0, 7], [2, 7], [5, 8], [5, 6]])
    best = pca(X, 1)
    assert_allclose(best.mean, [5, 7])
    assert_allclose(best.variances, [4.5, 0.5])
    assert_allclose(np.abs(best.V), [[1, 0]], atol=1e-12)
    assert_allclose(best.cost, 0.25)
    assert_allclose(best(X), X * [1, 0] + [0, 7], atol=1e-12)


def test_more_dimensions_than_points_is_allowed():
    X = cloud(3, 5, 0)
    best = pca(X, 4)
    assert best.V.shape == (4, 5)
    assert best.variances.shape == (5,)
    assert_allclose(best.variances[2:], 0, atol=1e-12)
    assert_allclose(best(X), X)


ONE = np.ones((2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pca(ONE[0], 1), r"pca: X must have points as rows; got shape"),
        (lambda: pca(ONE * np.nan, 1), "pca: X must be finite; got NaN"),
        (lambda: pca(ONE, 0), "k must be a whole number from 1 on; got 0"),
        (lambda: pca(ONE, 1.0), "k must be a whole number from 1 on; got 1.0"),
        (lambda: pca(ONE, 3), "k must be at most the dimension 2; got 3"),
        (
            lambda: pca(ONE, 1).encode(np.ones((2, 3))),
            r"X must have 2 columns; got shape \(2, 3\)",
        ),
        (lambda: pca(ONE, 1).decode(ONE), r"Z must have 1 columns; got shape \(2, 2\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
