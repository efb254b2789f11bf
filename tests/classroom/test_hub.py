"""A course of three students on a real JupyterHub: fetch, submit, grade, feedback.

It runs where JupyterHub and its proxy are installed: ``make hub-test`` does both.
"""

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import nbformat
import pytest
import requests
from nbformat import NotebookNode
from students import answer, mistaken

from classroom import exchange
from classroom.__main__ import main
from classroom.assignment import read
from classroom.course import BOOK, Course, enrol
from classroom.verify import solve

ASSIGNMENT = "connectionism"
STUDENTS = ("ann", "bob", "eve")
PATIENCE = 180  # seconds until something must have started
HERE = Path(sys.prefix, "node_modules", ".bin", "configurable-http-proxy")
SETTINGS = """\
load_subconfig({config!r})
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{
        "name": "test",
        "services": ["test"],
        "scopes": ["admin:users", "admin:servers", "tokens"],
    }}
]
"""


def why_not() -> str:
    """Return what is missing for a hub; nothing if it is all there."""
    missing = []
    if not importlib.util.find_spec("jupyterhub"):
        missing.append("jupyterhub")
    if not (HERE.exists() or shutil.which(HERE.name)):
        missing.append(HERE.name)
    return " and ".join(missing)


pytestmark = [
    pytest.mark.skipif(
        bool(why_not()),
        reason=f"{why_not()} not installed; to try it, run: make hub-test",
    ),
    pytest.mark.filterwarnings("ignore:unclosed file.*timestamp"),
]


class Hub:
    """A running hub, asked as an administrator; ``user`` asks as somebody else."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token

    def ask(self, verb: str, path: str, **body: object) -> requests.Response:
        return requests.request(
            verb,
            self.address + path,
            headers={"Authorization": f"token {self.token}"},
            timeout=60,
            **body,
        )

    def get(self, verb: str, path: str, **body: object):
        """Ask for something that must be there."""
        reply = self.ask(verb, path, **body)
        assert reply.ok, f"{verb} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def user(self, name: str) -> "Hub":
        """Start the server of a user, and return what asks as this user."""
        here = f"/hub/api/users/{name}"
        self.get("POST", here)
        token = self.get("POST", f"{here}/tokens", json={"note": "test"})
        self.get("POST", f"{here}/server")
        wait(lambda: self.get("GET", here)["servers"].get("", {}).get("ready"))
        return Hub(self.address, token["token"])


def wait(ready) -> None:
    """Wait until something is true."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, "It did not start in time."
        time.sleep(0.5)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def hub(tmp_path):
    """A hub with the settings of this repository, on ports of its own."""
    root, token = tmp_path / "hub", secrets.token_hex(16)
    root.mkdir()
    public, inside, proxy = free_ports(3)
    settings = root / "settings.py"
    settings.write_text(
        SETTINGS.format(
            config=str(BOOK / "classroom" / "hub" / "jupyterhub_config.py"),
            public=public,
            hub=inside,
            proxy=proxy,
            token=token,
        )
    )
    here = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "CLASSROOM_HUB": str(root),
        "PATH": os.pathsep.join([here, os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(BOOK),
    }
    log = root / "log.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(settings)],
            cwd=root,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Hub(f"http://127.0.0.1:{public}", token)
    try:
        wait(lambda: answers(process, started, log))
        yield started
    finally:
        process.terminate()  # it ends the servers and the proxy, too
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(process: subprocess.Popen[bytes], hub: Hub, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return hub.ask("GET", "/hub/api/users").ok
    except requests.ConnectionError:
        return False


class Desk:
    """What a student does in JupyterLab, asked of the student's own server."""

    def __init__(self, hub: Hub, name: str, course: str) -> None:
        self.hub = hub.user(name)
        self.here = f"/user/{name}"
        self.task = {"course_id": course, "assignment_id": ASSIGNMENT}

    def do(self, action: str) -> list[dict]:
        """Press a button of the list of assignments; return the list."""
        path = f"{self.here}/assignments/{action}"
        reply = self.hub.get("POST", path, json=self.task)
        assert reply["success"], reply["value"]
        return reply["value"]

    def path(self, file: str) -> str:
        return f"{self.here}/api/contents/{file}"

    def open(self, file: str):
        return self.hub.get("GET", self.path(file))["content"]

    def save(self, file: str, notebook: NotebookNode) -> None:
        body = {"type": "notebook", "content": notebook}
        self.hub.get("PUT", self.path(file), json=body)

    def feedback(self) -> str:
        """Fetch the feedback and return its text, in one line."""
        (submitted,) = (
            one for one in self.do("fetch_feedback") if one["status"] == "submitted"
        )
        (submission,) = submitted["submissions"]
        assert submission["has_local_feedback"]
        page = f"{submission['local_feedback_path']}/{ASSIGNMENT}.html"
        return " ".join(unescape(self.open(page)).split())


@pytest.mark.usefixtures("boxes")
def test_three_students_from_fetch_to_feedback(hub, course, tmp_path):
    root, shared = str(course.root), str(tmp_path / "hub" / "exchange")
    name, notebook = course.root.name, f"{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
    enrol(course, [{"id": student} for student in STUDENTS])
    in_exchange = [root, ASSIGNMENT, "--exchange", shared]
    assert exchange.main(["release", *in_exchange]) == 0

    desks = {student: Desk(hub, student, name) for student in STUDENTS}
    for desk in desks.values():
        (fetched,) = desk.do("fetch")
        assert fetched["status"] == "fetched"
    assignment = read(course.notebook("source", ASSIGNMENT))
    empty = nbformat.from_dict(desks["ann"].open(notebook))
    wrong = mistaken(assignment, 0)
    sources = {task: source for task, (_, source) in wrong.items()}
    desks["ann"].save(notebook, solve(empty, assignment.notebook))
    desks["bob"].save(notebook, answer(empty, **sources))
    for desk in desks.values():
        listed = desk.do("submit")
        assert {one["status"] for one in listed} == {"fetched", "submitted"}

    assert exchange.main(["collect", *in_exchange]) == 0
    assert main(["grade", root, ASSIGNMENT]) == 0
    assert main(["feedback", root, ASSIGNMENT]) == 0
    assert exchange.main(["feedback", *in_exchange]) == 0

    pages = {student: desk.feedback() for student, desk in desks.items()}
    for student, page in pages.items():
        file = Course(course.root).folder("feedback", ASSIGNMENT, student)
        own = (file / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")
        assert page == " ".join(unescape(own).split())
    for task, (mistake, _) in wrong.items():
        hint = " ".join(assignment.recipes[task].mistakes[mistake].hint.split())
        assert [s for s in STUDENTS if hint in pages[s]] == ["bob"]
        right = f"{task}: right in all"
        assert [s for s in STUDENTS if right in pages[s]] == ["ann"]
    for student, desk in desks.items():
        for other in set(STUDENTS) - {student}:
            closed = desk.hub.ask("GET", desks[other].path(notebook))
            assert closed.status_code == 403
