"""A week of a teacher who is not root, with nbgrader's own exchange.

The exchange lies below ``/usr/local/share``. It is made in a mount namespace of the test,
so that nothing of it is seen outside.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from classroom.course import BOOK

NOBODY = "65534"
NEEDED = [BOOK, Path(sys.prefix), Path(sys.base_prefix)]

# As the teacher: hand out, take in, grade and give back; then say what came of it.
WEEK = """
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from classroom import exchange
from classroom.__main__ import main
from classroom.course import Course
from classroom.marks import marks
from classroom.verify import solve

NAME = "connectionism"
STEAL = '''
import os, json
found = []
for top, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if f not in ("proc", "site-packages")]
    found += [os.path.join(top, f) for f in files if f.endswith(".ipynb")]
print("FOUND", found)
for file in found:
    for cell in json.load(open(file))["cells"]:
        if cell["cell_type"] == "code": exec("".join(cell["source"]))
'''

root = Path("/mnt/course")
(Path("/mnt/names.csv")).write_text("id\\nann\\neve\\n")
assert main(["start", str(root), "--students", "/mnt/names.csv"]) == 0
assert main(["release", str(root), NAME]) == 0
assert exchange.main(["release", str(root), NAME]) == 0
course = Course(root)
empty = nbformat.read(course.notebook("release", NAME), 4)
solved = solve(empty, nbformat.read(course.notebook("source", NAME), 4))
empty.cells.append(new_code_cell(STEAL))
inbound = Path("/usr/local/share/nbgrader/exchange/course/inbound")
for student, notebook in {"ann": solved, "eve": empty}.items():
    folder = inbound / f"{student}+{NAME}+2026-01-01 00:00:00.000000 UTC+x"
    folder.mkdir()
    nbformat.write(notebook, folder / f"{NAME}.ipynb")
    (folder / "submission_secret.txt").write_text(student)
assert exchange.main(["collect", str(root), NAME]) == 0
assert main(["grade", str(root), NAME]) == 0
assert main(["feedback", str(root), NAME]) == 0
assert exchange.main(["feedback", str(root), NAME]) == 0
shown = course.notebook("autograded", NAME, "eve").read_text()
print("NOTHING" if "FOUND []" in shown else "SOMETHING")
for row in marks(course):
    print("MARK", row.student, row.status, row.points)
for place in ("/usr/lib/course", sys.prefix + "/course", sys.prefix + "/lib/course"):
    print("REFUSED", main(["start", place]))
"""


def closed(place: Path) -> Path | None:
    """Return the first folder above a place that others cannot enter."""
    above = [*reversed(place.resolve().parents), place.resolve()]
    return next((one for one in above if not one.stat().st_mode & 1), None)


def opened(needed: list[Path]) -> str:
    """Return commands that let others see some places, also below closed folders."""
    hidden = {place.resolve(): closed(place) for place in needed}
    hidden = {place: door for place, door in hidden.items() if door}
    keep = [f"mkdir -p /mnt/{i}" for i in range(len(hidden))]
    for i, place in enumerate(hidden):
        keep.append(f"mount --bind '{place}' /mnt/{i}")
    for door in {*hidden.values()}:
        keep.append(f"mount -t tmpfs -o mode=755 tmpfs '{door}'")
    for i, place in enumerate(hidden):
        keep += [f"mkdir -p '{place}'", f"mount --bind /mnt/{i} '{place}'"]
    return "\n".join(keep)


@pytest.mark.usefixtures("boxes")
def test_teacher_grades_with_the_default_exchange():
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("Only root can become another user.")
    script = f"""set -e
        mount -t tmpfs -o mode=777 tmpfs /mnt
        {opened(NEEDED)}
        mount -t tmpfs -o mode=755 tmpfs /usr/local/share
        mkdir -p /usr/local/share/nbgrader/exchange
        chmod 777 /usr/local/share/nbgrader/exchange
        cd '{BOOK}'
        exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \\
            env HOME=/mnt LANG=C.UTF-8 '{sys.executable}' -B -
    """
    command = ["unshare", "--mount", "bash", "-c", script]
    done = subprocess.run(command, input=WEEK, capture_output=True, text=True)
    if "unshare failed" in done.stderr:
        pytest.skip(f"No mount namespace here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "NOTHING" in done.stdout
    assert "MARK ann graded 17.0\nMARK eve" in done.stdout
    assert done.stdout.split("MARK eve")[1].split()[1] == "0.0"
    assert done.stdout.count("REFUSED 2") == 3
