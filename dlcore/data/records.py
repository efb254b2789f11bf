"""Recorded runs: what experiments that take too long for a page have given.

A run is a script of the folder ``runs``; its record holds curves and figures as tables,
the weights of some of its models in eight bits, and a card that says how it was made.
``make runs`` lists them and repeats one.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_one_of
from dlcore.int8 import from_int8, to_int8

__all__ = ["Record", "folders", "load_weights", "record", "save_weights"]

_SCALES = ":scales"  # behind the name of a matrix


def folders() -> list[Path]:
    """List where records may lie: beside the package, and within what was installed.

    Example:
        >>> [folder.name for folder in folders()]
        ['runs', 'runs']
    """
    package = Path(__file__).parents[1]
    return [package.parent / "runs", package / "data" / "runs"]


def record(name: str) -> "Record":
    """Open the record of a run.

    Example:
        >>> record("digits").card["seeds"]
        [0, 1, 2]
    """
    found = {
        card.parent.name: card.parent
        for folder in reversed(folders())
        for card in sorted(folder.glob("*/card.json"))
    }
    check_one_of("record: name", name, [*found])
    return Record(found[name])


class Record:
    """What a run has given.

    Attributes:
        folder: where it lies.
        card: how it was made: command, settings, seeds, CPU seconds, versions, hashes, and
            what was chosen on which data.

    Example:
        >>> run = record("digits")
        >>> run.figures("cnn", "test").shape  # one for each seed
        (3,)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card = json.loads((folder / "card.json").read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        made = self.card["seconds"] / 60
        return f"record of {self.folder.name}: {made:.0f} minutes of one core, recorded"

    def _rows(self, table: str, model: str, seed: int | None) -> Iterator[Any]:
        check_one_of(f"record {self.folder.name}: model", model, self.card["models"])
        if seed is not None:
            seeds = self.card["seeds"]
            check_one_of(f"record {self.folder.name}: seed", seed, seeds)
        with (self.folder / table).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["model"] == model and seed in (None, int(row["seed"])):
                    yield row

    def figures(self, model: str, figure: str) -> Float[ndarray, "seeds"]:
        """Return a figure of a model, such as its test loss, for each seed in order."""
        rows = [*self._rows("figures.csv", model, None)]
        names = [*rows[0]][2:]
        check_one_of(f"record {self.folder.name}: figure", figure, names)
        return np.array([float(row[figure]) for row in rows])

    def curve(self, model: str, seed: int) -> dict[str, Float[ndarray, "_"]]:
        """Return the columns of a learning curve: steps, CPU seconds, what was watched."""
        rows = [*self._rows("curves.csv", model, seed)]
        return {
            name: np.array([float(row[name]) for row in rows])
            for name in [*rows[0]][2:]
        }

    def weights(self, model: str, seed: int = 0) -> dict[str, ndarray]:
        """Return the stored weights of a model, by name.

        ``net.load_state_dict`` takes them when they are tensors:
        ``{name: torch.tensor(W) for name, W in record.weights("gru").items()}``.
        """
        path = self.folder / f"{model}-{seed}.npz"
        kept = [f"{m} with seed {s}" for m, s in self.card["kept"]]
        what, rule = f"record {self.folder.name}: weights", f"be of {', '.join(kept)}"
        check(path.exists(), what, rule, f"{model} with seed {seed}")
        return load_weights(path)


def save_weights(path: Path, weights: Mapping[str, ndarray]) -> None:
    """Store weights, matrices in eight bits and vectors as floats.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "net.npz"
        ...     save_weights(path, {"W": np.array([[127.0, 1.0]]), "b": np.array([0.5])})
        ...     {name: W.tolist() for name, W in load_weights(path).items()}
        {'W': [[127.0, 1.0]], 'b': [0.5]}
    """
    stored: dict[str, ndarray] = {}
    for name, W in weights.items():
        if W.ndim > 1:
            stored[name], stored[name + _SCALES] = to_int8(W)
        else:
            stored[name] = W.astype(np.float32)
    np.savez_compressed(path, allow_pickle=False, **stored)


def load_weights(path: Path) -> dict[str, ndarray]:
    """Return the weights that :func:`save_weights` has stored.

    Example:
        >>> weights = load_weights(record("digits").folder / "cnn-0.npz")
        >>> sum(W.size for W in weights.values())
        42962
    """
    with np.load(path, allow_pickle=False) as stored:
        return {
            name: from_int8(stored[name], stored[name + _SCALES])
            if name + _SCALES in stored
            else stored[name]
            for name in stored.files
            if not name.endswith(_SCALES)
        }
