import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score
from strategies import seeds

from dlcore.optimization.cross_validation import cross_validate, kfold, leave_one_out


@given(rng=seeds, s=st.integers(2, 40), data=st.data())
def test_every_example_is_held_out_once_in_folds_of_nearly_equal_size(rng, s, data):
    k = data.draw(st.integers(2, s))
    folds = kfold(s, k, rng)
    assert len(folds) == k
    held_out = np.concatenate([test for _, test in folds])
    assert sorted(held_out) == list(range(s))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(s))
        assert len(test) in (s // k, s // k + 1)
    theirs = [len(test) for _, test in KFold(k).split(np.zeros(s))]
    assert sorted(len(test) for _, test in folds) == sorted(theirs)


def ridge(penalty):
    def fit(X, y):
        model = Ridge(alpha=penalty, fit_intercept=False).fit(X, y)
        return model.predict

    return fit


def squares(prediction, y):
    return (prediction - y) ** 2


@given(rng=seeds, penalty=st.floats(0.01, 10))
def test_one_fold_per_example_equals_scikit_learn_and_the_shortcut(rng, penalty):
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    ours = cross_validate(ridge(penalty), squares, X, y, 12, rng)
    theirs = -cross_val_score(
        Ridge(alpha=penalty, fit_intercept=False),
        X,
        y,
        cv=LeaveOneOut(),
        scoring="neg_mean_squared_error",
    )
    assert_allclose(ours, theirs)
    S = X @ np.linalg.solve(X.T @ X + penalty * np.eye(4), X.T)
    assert_allclose(leave_one_out(S, y) ** 2, ours)


def test_cross_validation_by_hand():
    X, y = np.zeros((4, 1)), np.array([1.0, 1.0, 5.0, 5.0])

    def mean(X, y):
        return lambda Z: np.full(len(Z), y.mean())

    losses = cross_validate(mean, squares, X, y, 4, np.random.default_rng(0))
    assert_allclose(losses, [(1 - 11 / 3) ** 2] * 2 + [(5 - 7 / 3) ** 2] * 2)


RNG = np.random.default_rng(0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kfold(3, 4, RNG), "kfold: k must be at most 3, the num"),
        (lambda: kfold(3, 1, RNG), "kfold: k must be a whole number"),
        (
            lambda: cross_validate(
                None, squares, np.zeros((3, 1)), np.zeros(2), 2, RNG
            ),
            "cross_validate: y must have 3 target",
        ),
        (
            lambda: leave_one_out(np.eye(3), np.zeros(3)),
            "leave_one_out: S must have a diagonal",
        ),
        (
            lambda: leave_one_out(np.zeros((2, 3)), np.zeros(3)),
            "leave_one_out: S must be a square",
        ),
        (
            lambda: leave_one_out(np.zeros((2, 2)), np.array([0, np.nan])),
            "leave_one_out: S and y must be finite",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
