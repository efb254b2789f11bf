"""Ways to make submissions."""

import ast
import copy
import re

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from classroom.assignment import Assignment, role
from classroom.course import Course
from classroom.gradebook import Mark, mark


def submit(course: Course, student: str, notebook: NotebookNode, name: str) -> None:
    """Hand in a notebook."""
    file = course.notebook("submitted", name, student)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)


def mark_of(course: Course, student: str, name: str) -> Mark | None:
    """Look a mark up."""
    with course.gradebook() as gradebook:
        return mark(gradebook, name, student)


def find(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(c for c in notebook.cells if role(c, "grade_id") == grade_id)


def answer(notebook: NotebookNode, **sources: str) -> NotebookNode:
    """Return a copy with other answers; names are those of the functions."""
    changed = copy.deepcopy(notebook)
    for name, source in sources.items():
        find(changed, f"{name}-answer").source = source
    return changed


def add(notebook: NotebookNode, *sources: str) -> NotebookNode:
    """Return a copy with more cells at its end."""
    changed = copy.deepcopy(notebook)
    changed.cells += [new_code_cell(source) for source in sources]
    return changed


def mistaken(assignment: Assignment, which: int) -> dict[str, tuple[str, str]]:
    """Return for each task the name of a known mistake, and an answer that makes it."""
    found = {}
    for name, recipe in assignment.recipes.items():
        mistake = list(recipe.mistakes)[which % len(recipe.mistakes)]
        found[name] = mistake, _as_answer(assignment.notebook, name, mistake)
    return found


def _as_answer(notebook: NotebookNode, name: str, mistake: str) -> str:
    """Write a mistake as an answer; the solution, which it may call, comes before."""
    solution = find(notebook, f"{name}-answer").source
    body = ast.parse(find(notebook, name).source).body
    helpers = [
        ast.unparse(_bare(node))
        for node in body
        if isinstance(node, ast.FunctionDef | ast.Assign)
        and getattr(node, "name", "") != "inputs"
    ]
    text = "\n".join(helpers)
    renamed = re.sub(rf"\b{name}\b", f"reference_{name}", text)
    return f"{solution}\n\nreference_{name} = {name}\n{renamed}\n{name} = {mistake}\n"


def _bare(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
    return node
