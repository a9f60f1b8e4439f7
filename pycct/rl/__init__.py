"""Levels for learning. What lives here imports the public modules of pycct only."""

from pycct.rl.levels import Level, Mover, Waypoint, generate

__all__ = ["Level", "Mover", "Waypoint", "generate"]
