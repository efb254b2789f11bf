"""Control groups: made where the kernel and our rights allow it, and else left out."""

import os
import subprocess
from pathlib import Path

import pytest

from classroom import groups
from classroom.groups import Group

MEMORY = 1 << 30


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A made-up tree of groups, in which this process is in the group ``ours``."""
    monkeypatch.setattr(groups, "TREE", tmp_path)
    monkeypatch.setattr(groups, "OURS", tmp_path / "where")
    (tmp_path / "ours").mkdir()
    return tmp_path


def second_version(tree, controllers="cpu memory pids", inside=None):
    """Make the tree one of the second version, with some processes in our group."""
    inside = [os.getpid()] if inside is None else inside
    (tree / "where").write_text("0::/ours\n")
    (tree / "ours" / "cgroup.controllers").write_text(controllers)
    text = "".join(f"{pid}\n" for pid in inside)
    (tree / "ours" / "cgroup.procs").write_text(text)


def test_first_version_has_groups_in_ours(tree):
    (tree / "memory" / "ours").mkdir(parents=True)
    (tree / "where").write_text("4:memory:/ours\n0::/\n")
    group = Group(MEMORY)
    (place,) = (tree / "memory" / "ours").iterdir()
    command = group.command(["true"])
    assert command[-2:] == [str(place / "cgroup.procs"), "true"]
    assert (place / "memory.limit_in_bytes").read_text() == str(MEMORY)


def test_second_version_has_them_beside_a_group_for_ourselves(tree):
    second_version(tree)
    first = Group(MEMORY)
    own = tree / "ours" / f"grader-{os.getpid()}"
    assert (own / "cgroup.procs").read_text() == str(os.getpid())
    assert (tree / "ours" / "cgroup.subtree_control").read_text() == "+memory"
    (tree / "where").write_text(f"0::/ours/{own.name}\n")
    second = Group(MEMORY)
    places = [Path(g.command(["true"])[-2]).parent for g in (first, second)]
    assert {place.parent for place in places} == {tree / "ours"}
    assert len({*places}) == 2
    for place in places:
        assert (place / "memory.max").read_text() == str(MEMORY)


def test_groups_of_graders_that_were_killed_are_removed(tree):
    ours = tree / "memory" / "ours"
    for name in (f"box-{os.getpid()}-x", "box-999999999-0", "another"):
        (ours / name).mkdir(parents=True)
    (tree / "where").write_text("4:memory:/ours\n")
    new = Path(Group(MEMORY).command(["true"])[-2]).parent.name
    left = {place.name for place in ours.iterdir()}
    assert left == {f"box-{os.getpid()}-x", "another", new}


@pytest.mark.parametrize(
    "how", ["no memory", "others inside", "nothing", "no such group"]
)
def test_without_a_group_the_command_stays(tree, how):
    if how == "no memory":
        second_version(tree, controllers="cpu pids")
    elif how == "others inside":
        second_version(tree, inside=[1, os.getpid()])
    elif how == "no such group":
        (tree / "where").write_text("4:memory:/nowhere\n")
    else:
        (tree / "where").write_text("")
    group = Group(MEMORY)
    assert group.command(["true"]) == ["true"]
    group.close()


def test_the_kernel_ends_what_uses_more_than_the_group_has():
    """Buffers of sockets belong to no process; only the group counts them."""
    group = Group(100 << 20)
    if group.command([]) == []:
        pytest.skip("There are no control groups for us on this machine.")
    code = (
        "import socket\npairs = [socket.socketpair() for _ in range(400)]\n"
        "for a, b in pairs:\n"
        "    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)\n"
        "    a.setblocking(False)\n"
        "    try:\n"
        "        while True: a.send(b'x' * 60_000)\n"
        "    except OSError: pass\n"
    )
    done = subprocess.run(group.command(["python3", "-c", code]))
    group.close()
    assert done.returncode == -9
