"""Collision responses: the remaining motion after a collision (MOVE 8).

Moves call `respond` in every rule set, with bump 0 and friction 1, and with ``normalize`` in the
recovery sweep (in ``document`` in the whole walk experiment, RULES 9 row 6). `slide` and
`slide_crease` are the alternatives of the documents (MOVE 8.3 and 8.4) for other controllers; no
rule set uses them.
"""

from pycct.character.response import respond, slide, slide_crease

__all__ = ["respond", "slide", "slide_crease"]
