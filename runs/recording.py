"""How a run is made, listed, compared with its record, and found to hold.

Every model and seed is a job of its own, one core each; finished jobs are kept, so that an
interrupted run goes on where it stopped. Weights are stored in eight bits and loaded again
before a model is judged: what a record says is said of the weights that it holds.
"""

import ast
import csv
import hashlib
import importlib
import json
import multiprocessing
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from dlcore.data.records import Record, load_weights, save_weights
from dlcore.data.wheels import WHEELS

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs"
FIRST = 20  # steps whose costs are recorded one by one
FOLLOWED = 5  # of them, how many a test repeats
CLOSE = 1e-3  # relative: another processor rounds otherwise
MOST_BYTES = {"weights of a model": 500_000, "all records": 8_000_000}

sys.path.append(str(ROOT / "book" / "_ext"))
from book_code import modules, parsed, read_module  # noqa: E402


class RecordError(Exception):
    """A record does not hold; the message says why, and what to run."""


def names() -> list[str]:
    """List the runs."""
    left_out = {"__init__", "__main__", "recording"}
    return sorted(path.stem for path in RUNS.glob("*.py") if path.stem not in left_out)


def script(name: str) -> ModuleType:
    """Import the script of a run."""
    if name not in names():
        raise RecordError(f"There is no run {name!r}. There are: {', '.join(names())}.")
    return importlib.import_module(f"runs.{name}")


def jobs(run: ModuleType) -> list[tuple[str, int]]:
    """List models with their seeds."""
    return [(model, seed) for model in run.MODELS for seed in run.SEEDS]


def hashes(name: str, root: Path = ROOT) -> dict[str, str]:
    """Hash what a run depends on: its script, modules of ``dlcore``, and its data.

    Comments, docstrings and layout do not count.
    """
    path = root / "runs" / f"{name}.py"
    tree = parsed(path.read_text(encoding="utf-8"))
    found = {f"runs/{name}.py": _digest(ast.dump(tree))}
    for file in modules([path.read_text(encoding="utf-8")], root):
        found[file.relative_to(root).as_posix()] = _digest(read_module(file, root)[0])
    wheels = script(name).DATA
    return found | {WHEELS[wheel].file: WHEELS[wheel].sha256 for wheel in wheels}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# A job.


def work(name: str, model: str, seed: int, folder: Path) -> None:
    """Train one model, store its weights, judge what was stored."""
    torch.set_num_threads(1)
    run = script(name)
    net = run.build(model, seed)
    looks: list[dict[str, float]] = []
    looking = 0.0
    began = time.process_time()

    def after_step(t: int) -> None:
        nonlocal looking
        if t % run.EVERY == 0:
            start = time.process_time()
            net.eval()
            seconds = start - began - looking
            looks.append({"step": t, "seconds": round(seconds, 1), **run.watch(net)})
            net.train()
            looking += time.process_time() - start

    costs = run.train(net, model, seed, after_step)
    seconds = time.process_time() - began
    weights = {key: W.detach().numpy() for key, W in net.state_dict().items()}
    path = folder / f"{model}-{seed}.npz"
    save_weights(path, weights)
    load(net, path)
    figures = run.evaluate(net)
    every = np.reshape(costs[: run.EVERY * len(looks)], (len(looks), run.EVERY))
    for look, cost in zip(looks, every.mean(axis=1), strict=True):
        look["cost"] = float(cost)
    done = {"seconds": round(seconds), "curve": looks, "figures": figures}
    done |= {"first": [float(cost) for cost in costs[:FIRST]]}
    # Last, so that a job that was stopped is not taken for a finished one.
    (folder / f"{model}-{seed}.json").write_text(json.dumps(done), encoding="utf-8")


def load(net: torch.nn.Module, path: Path) -> None:
    """Give a network the weights of a record."""
    stored = {key: torch.tensor(W) for key, W in load_weights(path).items()}
    net.load_state_dict(stored)
    net.eval()


# A run.


def repeat(name: str, say: Callable[[str], None] = print) -> None:
    """Run all jobs that are not finished, say how they differ, and write the record."""
    run, code = script(name), hashes(name)
    kept = RUNS / f".{name}"  # not in the repository
    if _read_json(kept / "hashes.json") != code:
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        (kept / "hashes.json").write_text(json.dumps(code), encoding="utf-8")
    left = [(m, s) for m, s in jobs(run) if not (kept / f"{m}-{s}.json").exists()]
    total, began = len(jobs(run)), time.monotonic()
    say(
        f"{name}: {total} jobs, {total - len(left)} done; one on each of {_cores()} cores"
    )
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_cores(), mp_context=fresh) as pool:
        todo = {pool.submit(work, name, m, s, kept): (m, s) for m, s in left}
        for finished, job in enumerate(as_completed(todo), total - len(left) + 1):
            job.result()
            model, seed = todo[job]
            done = _read_json(kept / f"{model}-{seed}.json")
            figures = ", ".join(f"{key} {v:.4g}" for key, v in done["figures"].items())
            minutes = (time.monotonic() - began) / 60
            say(
                f"  {finished} of {total}, {minutes:.0f} min: {model}, seed {seed}: "
                f"{figures}; {done['seconds']} CPU s"
            )
    for line in differences(name, kept):
        say(line)
    write(name, kept, code)
    shutil.rmtree(kept)
    say(f"Recorded in runs/{name}.")


def _cores() -> int:
    return os.cpu_count() or 1


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def differences(name: str, kept: Path) -> Iterator[str]:
    """Say how finished jobs differ from the record."""
    if not (RUNS / name / "card.json").exists():
        return
    record, run = Record(RUNS / name), script(name)
    for model, seed in jobs(run):
        found = _read_json(kept / f"{model}-{seed}.json")["figures"]
        place = run.SEEDS.index(seed)
        for figure, value in found.items():
            try:
                before = record.figures(model, figure)[place]
            except (ValueError, IndexError):
                yield f"  {model}, seed {seed}, {figure}: {value:.5g}, not recorded before"
            else:
                if not np.isclose(value, before, rtol=CLOSE):
                    yield f"  {model}, seed {seed}, {figure}: {before:.5g} → {value:.5g}"


def write(name: str, kept: Path, code: dict[str, str]) -> None:
    """Write the record of finished jobs."""
    run, folder = script(name), RUNS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    done = {job: _read_json(kept / f"{job[0]}-{job[1]}.json") for job in jobs(run)}
    tables: dict[str, list[dict[str, Any]]] = {"curves": [], "figures": [], "first": []}
    for (model, seed), found in done.items():
        of = {"model": model, "seed": seed}
        tables["curves"] += [{**of, **_short(look)} for look in found["curve"]]
        seconds = {"seconds": found["seconds"]}
        tables["figures"].append({**of, **_short(found["figures"]), **seconds})
        tables["first"] += [
            {**of, **_short({"step": t, "cost": c})}
            for t, c in enumerate(found["first"])
        ]
    for table, rows in tables.items():
        with (folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    weights = [(model, run.SEEDS[0]) for model in run.KEPT]
    for model, seed in weights:
        shutil.copy(kept / f"{model}-{seed}.npz", folder)
    card = {
        "what": (run.__doc__ or "").split("\n")[0],
        "command": f"make runs RUN={name}",
        "models": run.MODELS,
        "seeds": [*run.SEEDS],
        "kept": weights,
        "chosen": run.CHOSEN,
        "seconds": sum(found["seconds"] for found in done.values()),
        "versions": versions(),
        "made with": code,
    }
    _write_card(folder, card)


def _short(row: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.6g}") for key, value in row.items()}


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    text = json.dumps(card, indent=1, ensure_ascii=False)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
    }


# Does a record hold?


def check_hashes(name: str, root: Path = ROOT) -> None:
    """Refuse a record whose script, modules or data have changed."""
    card = Record(root / "runs" / name).card
    made, now = card.get("confirmed with", card["made with"]), hashes(name, root)
    changed = [key for key in {**made, **now} if made.get(key) != now.get(key)]
    if changed:
        raise RecordError(
            f"runs/{name} was recorded with other code or data: {', '.join(changed)}. "
            f"If it computes the same, run: make runs RUN={name} CONFIRM=1\n"
            f"else repeat it ({card['seconds'] / 60:.0f} CPU minutes): make runs RUN={name}"
        )


def check_weights(name: str, model: str) -> None:
    """Refuse stored weights that do not give the recorded figures."""
    run, record = script(name), Record(RUNS / name)
    seed = run.SEEDS[0]
    net = run.build(model, seed)
    load(net, record.folder / f"{model}-{seed}.npz")
    for figure, value in run.evaluate(net).items():
        recorded = record.figures(model, figure)[0]
        if not np.isclose(value, recorded, rtol=CLOSE):
            raise RecordError(
                f"runs/{name}: the weights of {model} give {figure} {value:.5g}, "
                f"recorded is {recorded:.5g}. Repeat it: make runs RUN={name}"
            )


def check_start(name: str, model: str, seed: int, steps: int = FOLLOWED) -> None:
    """Refuse a curve that the first steps of training do not follow."""

    def after_step(t: int) -> bool:
        return t == steps

    run, record = script(name), Record(RUNS / name)
    net = run.build(model, seed)
    costs = run.train(net, model, seed, after_step)
    rows = record._rows("first.csv", model, seed)
    recorded = [float(row["cost"]) for row in rows][:steps]
    if not np.allclose(costs[:steps], recorded, rtol=CLOSE):
        raise RecordError(
            f"runs/{name}: training {model} with seed {seed} starts with the costs "
            f"{np.round(costs[:steps], 4)}, recorded are {np.round(recorded, 4)}. "
            f"Repeat it: make runs RUN={name}"
        )


def check_size(name: str) -> None:
    """Refuse weights, and records, that are too large for the repository."""
    for path in (RUNS / name).glob("*.npz"):
        _limit(path.name, path.stat().st_size, "weights of a model")
    total = sum(path.stat().st_size for path in RUNS.glob("*/*"))
    _limit("runs", total, "all records")


def _limit(what: str, size: int, kind: str) -> None:
    if size > MOST_BYTES[kind]:
        raise RecordError(
            f"{what}: {kind} may have {MOST_BYTES[kind]:,} bytes; got {size:,}. "
            "Keep fewer models (KEPT), or smaller ones."
        )


def confirm(name: str, say: Callable[[str], None] = print) -> None:
    """Accept changed code for a record that it still gives, as far as can be tried.

    All recorded first steps of every model and seed are taken again, and all stored weights
    are judged again. The card keeps the hashes of the code that made it.
    """
    run, record = script(name), Record(RUNS / name)
    for model, seed in jobs(run):
        check_start(name, model, seed, FIRST)
        say(f"  {model}, seed {seed}: the first {FIRST} steps are those recorded")
    for model in run.KEPT:
        check_weights(name, model)
        say(f"  {model}: its weights give the recorded figures")
    _write_card(record.folder, {**record.card, "confirmed with": hashes(name)})
    say(f"runs/{name} is confirmed.")


def state(name: str) -> str:
    """Say in a few words whether a record holds."""
    if not (RUNS / name / "card.json").exists():
        return "not recorded"
    try:
        check_hashes(name)
    except RecordError:
        return "made with other code"
    return "holds"


def listing() -> Iterator[str]:
    """Say of every run what it is, what it costs, and whether its record holds."""
    total = 0
    for name in names():
        what = (script(name).__doc__ or "").split("\n")[0]
        card = _read_json(RUNS / name / "card.json")
        seconds = card["seconds"] if card else 0
        cost = f"{seconds / 60:.0f} CPU minutes" if card else "cost unknown"
        yield f"{name:12} {cost:18} {state(name):22} {what}"
        total += seconds
    yield f"together {total / 3600:.1f} CPU hours; one: make runs RUN=<name>"
