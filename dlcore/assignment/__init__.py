"""Assignments on the student's side: the checks that a notebook carries."""

from dlcore.assignment.checks import Checks

__all__ = ["Checks"]
