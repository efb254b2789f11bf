"""List the recorded runs, repeat one, or confirm it: ``python -m runs [name] [--confirm]``."""

import argparse
import sys

from runs import recording


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m runs", description=__doc__)
    parser.add_argument(
        "name", nargs="?", help="the run to repeat; without it, list them"
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="accept changed code if it gives the recorded start and figures",
    )
    options = parser.parse_args()
    try:
        if options.name is None:
            for line in recording.listing():
                print(line)
        elif options.confirm:
            recording.confirm(options.name)
        else:
            recording.repeat(options.name)
    except recording.RecordError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
