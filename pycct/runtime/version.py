"""Version of the package and version of its results."""

__version__ = "0.1.0.dev0"

# Raised whenever the same input may give other bits than before; saves carry it.
RESULTS_VERSION = 3
