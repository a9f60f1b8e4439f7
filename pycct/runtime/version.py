"""Version of the package and version of its results."""

__version__ = "0.1.0.dev0"

# Goes up whenever the same input may return other bits than before. Saves contain it.
RESULTS_VERSION = 3
