"""The commands of `python -m pycct`.

Each command is a module with `add_parser(subparsers)`, which adds its options, and `run(args)`,
which returns the exit code.

Imports the facade: `pycct` and its public modules.
"""
