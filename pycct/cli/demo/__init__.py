"""The demo: characters wander through a level; picture, numbers and summary.

`level` builds the level, `walkers` moves the characters, `picture` draws them, and `main` is the
command.

Imports the facade and `pycct.cli`.
"""
