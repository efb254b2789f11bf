"""Recorded runs: a record holds, or is refused with the command that mends it."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dlcore.data.records import load_weights, record, save_weights
from runs import recording

ROOT = Path(__file__).parents[1]
NAMES = recording.names()
MOST_SECONDS = 4 * 3600 * 2  # four hours of two cores
CARD = {"what", "command", "models", "seeds", "kept", "chosen", "seconds", "versions"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def of_all(function):
    found = [
        (name, item) for name in NAMES for item in function(recording.script(name))
    ]
    return pytest.mark.parametrize(("name", "item"), found)


# The records of the book.


@pytest.mark.parametrize("name", NAMES)
def test_record_was_made_by_the_code_of_today(name):
    recording.check_hashes(name)


@of_all(lambda run: run.KEPT)
def test_stored_weights_give_the_recorded_figures(name, item):
    recording.check_weights(name, item)


@of_all(recording.jobs)
def test_first_steps_follow_the_recorded_curve(name, item):
    recording.check_start(name, *item)


@pytest.mark.parametrize("name", NAMES)
def test_card_says_how_it_was_made(name):
    card, run = record(name).card, recording.script(name)
    assert {*card} >= CARD
    assert (card["models"], card["seeds"]) == (run.MODELS, [*run.SEEDS])
    assert card["command"] == f"make runs RUN={name}"
    assert len(card["seeds"]) >= 3
    assert card["seconds"] > 0
    recording.check_size(name)


def test_all_runs_can_be_repeated_in_an_afternoon():
    assert sum(record(name).card["seconds"] for name in NAMES) < MOST_SECONDS


def test_every_model_and_seed_has_a_curve_and_figures():
    for name in NAMES:
        for model, seed in recording.jobs(recording.script(name)):
            curve = record(name).curve(model, seed)
            assert {"step", "seconds", "cost"} < {*curve}
            assert (np.diff(curve["step"]) > 0).all()
            assert (np.diff(curve["seconds"]) > 0).all()
            assert len(record(name).figures(model, "seconds")) == 3


# A small run: made, interrupted, repeated, and broken in all ways.

TOY = '''"""A line through points."""

import numpy as np
import torch
from torch import nn

from dlcore.optimization.optimizers import GD
from dlcore.optimization.training import minimise

SEEDS = [0, 1, 2]
MODELS = {"line": {"inputs": 3}}
KEPT, DATA, CHOSEN, EVERY = ["line"], [], "Nothing.", 10
X = torch.tensor(np.random.default_rng(0).normal(size=(40, 3))).float()
y = X @ torch.tensor([[1.0], [-2.0], [0.5]])


def build(model, seed):
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def train(net, model, seed, after_step):
    cost = lambda: ((net(X) - y) ** 2).mean()
    return minimise(cost, GD(net.parameters(), lr=0.05), 30, after_step=after_step)


@torch.no_grad()
def watch(net):
    return {"error": ((net(X) - y) ** 2).mean().item()}


evaluate = watch
'''


def call(project, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "runs", *arguments],
        cwd=project,
        env={"PYTHONPATH": str(project), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A project with a run that has been recorded."""
    project = tmp_path_factory.mktemp("project")
    caches = shutil.ignore_patterns("__pycache__", "*.js", "*.webp")
    shutil.copytree(ROOT / "dlcore", project / "dlcore", ignore=caches)
    (project / "book" / "_ext").mkdir(parents=True)
    shutil.copy(ROOT / "book" / "_ext" / "book_code.py", project / "book" / "_ext")
    (project / "runs").mkdir()
    for name in ("__init__", "__main__", "recording"):
        shutil.copy(ROOT / "runs" / f"{name}.py", project / "runs")
    (project / "runs" / "toy.py").write_text(TOY)
    done = call(project, "toy")
    assert done.returncode == 0, done.stderr
    assert "3 of 3" in done.stdout
    assert not (project / "runs" / ".toy").exists()
    return project


@pytest.fixture
def project(recorded, tmp_path):
    """A copy of it, to break."""
    shutil.copytree(recorded, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


CHECK = """
import sys
from runs import recording
from runs.recording import *
for check in ("check_hashes('toy')", "check_weights('toy', 'line')",
              "check_start('toy', 'line', 2)", "check_size('toy')"):
    try:
        eval(check)
    except RecordError as error:
        print(check.split("(")[0], "refuses:", error)
"""


def refusals(project):
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=project,
        env={"PYTHONPATH": str(project), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def change_row(path, place, factor):
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    last = [*rows[0]][-1] if path.stem != "figures" else "error"
    rows[place][last] = float(rows[place][last]) * factor
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def test_record_that_nobody_touched_holds(recorded):
    assert refusals(recorded) == ""
    assert "holds" in call(recorded).stdout


def test_comments_and_docstrings_are_no_change(project):
    edit(project / "runs" / "toy.py", "SEEDS = ", "# Three of them.\nSEEDS = ")
    edit(project / "dlcore" / "checks.py", '"""Refuse', '"""Now refuse')
    assert refusals(project) == ""


def test_changed_script_is_refused_with_the_command_that_renews(project):
    edit(project / "runs" / "toy.py", "lr=0.05", "lr=0.04")
    said = refusals(project)
    assert "check_hashes refuses: runs/toy was recorded with other code" in said
    assert "runs/toy.py" in said
    assert "make runs RUN=toy" in said
    assert "check_start refuses" in said  # the first cost is the same, the next is not
    assert "made with other code" in call(project).stdout


def test_changed_module_of_dlcore_is_refused(project):
    path = project / "dlcore" / "optimization" / "training.py"
    edit(path, "optimizer.zero_grad()", "optimizer.zero_grad() or None")
    said = refusals(project)
    assert "other code or data: dlcore/optimization/training.py." in said


def test_changed_weights_are_refused(project):
    path = project / "runs" / "toy" / "line-0.npz"
    weights = load_weights(path)
    weights["weight"][0, 0] += 0.1
    save_weights(path, weights)
    assert (
        "check_weights refuses: runs/toy: the weights of line give error"
        in refusals(project)
    )


def test_changed_figure_is_refused(project):
    change_row(project / "runs" / "toy" / "figures.csv", 0, 1.01)
    assert "check_weights refuses" in refusals(project)


def test_changed_curve_is_refused(project):
    change_row(project / "runs" / "toy" / "first.csv", 42, 1.01)
    said = refusals(project)
    assert "check_start refuses: runs/toy: training line with seed 2 starts" in said


def test_weights_that_are_too_large_are_refused(project):
    numbers = np.random.default_rng(0).integers(-127, 127, 600_000).astype(np.int8)
    (project / "runs" / "toy" / "more.npz").write_bytes(numbers.tobytes())
    assert "check_size refuses: more.npz: weights of a model may have" in refusals(
        project
    )


def test_code_that_computes_the_same_is_confirmed(project):
    edit(project / "runs" / "toy.py", "lr=0.05", "lr=0.1 / 2")
    done = call(project, "toy", "--confirm")
    assert done.returncode == 0, done.stderr
    assert "line, seed 2: the first 20 steps are those recorded" in done.stdout
    assert refusals(project) == ""
    card = json.loads((project / "runs" / "toy" / "card.json").read_text())
    assert card["made with"] != card["confirmed with"]


def test_code_that_computes_something_else_is_not_confirmed(project):
    edit(project / "runs" / "toy.py", "lr=0.05", "lr=0.06")
    done = call(project, "toy", "--confirm")
    assert done.returncode
    assert "Repeat it: make runs RUN=toy" in done.stderr


def test_interrupted_run_goes_on_and_says_what_differs(project):
    edit(project / "runs" / "toy.py", "lr=0.05", "lr=0.06")
    stop = 'seed != 2 or open("on")'
    edit(
        project / "runs" / "toy.py",
        "    cost = lambda",
        f"    {stop}\n    cost = lambda",
    )
    done = call(project, "toy")
    assert done.returncode  # the third job has no file "on"
    assert "0 done" in done.stdout
    (project / "on").write_text("")
    done = call(project, "toy")
    assert done.returncode == 0, done.stderr
    assert "3 jobs, 2 done" in done.stdout
    assert "line, seed 0, error: " in done.stdout
    assert "→" in done.stdout
    assert refusals(project) == ""


def test_unknown_run_is_refused(recorded):
    done = call(recorded, "toys")
    assert done.returncode
    assert "There is no run 'toys'. There are: toy." in done.stderr
