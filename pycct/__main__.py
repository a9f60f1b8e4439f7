"""Command line: ``python -m pycct COMMAND``."""

import sys

from pycct.cli.main import COMMANDS, main

__all__ = ["COMMANDS", "main"]

if __name__ == "__main__":
    sys.exit(main())
