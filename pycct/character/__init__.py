"""One move of one character.

`move` runs the passes of a move, `response` computes what a collision leaves of a motion, `frame`
holds a controller at the end of a move, and `parameters` reads and checks the settings. `state_io`
turns parameters and states into bytes and hashes, `contacts` builds the public contacts, and
`records` holds hits, ground, state and costs for Python.

May import all lower layers: `runtime` to `scene`.
"""
