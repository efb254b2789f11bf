"""The commands of a teacher, and of an author of assignments."""

import argparse
import sys
from pathlib import Path

from classroom.assignment import read
from classroom.course import ASSIGNMENTS
from classroom.verify import verify


def run_verify(options: argparse.Namespace) -> int:
    """Check instructors' notebooks, and say what is wrong with them."""
    files = options.notebooks or sorted(ASSIGNMENTS.glob("*.ipynb"))
    wrong = 0
    for file in files:
        file = file if file.suffix else ASSIGNMENTS / f"{file}.ipynb"
        sentences = list(verify(read(file)))
        wrong += len(sentences)
        print(f"{file.stem}: {'ready' if not sentences else 'not ready'}")
        print("".join(f"  {said}\n" for said in sentences), end="")
    return int(wrong > 0)


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m classroom")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("verify", help=run_verify.__doc__)
    command.add_argument(
        "notebooks", nargs="*", type=Path, metavar="ASSIGNMENT"
    )
    command.set_defaults(run=run_verify)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
