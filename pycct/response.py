"""What becomes of a motion after a collision: the kernels of MOVE 8.

`respond` is what moves compute, by every rule set: with bump 0 and friction 1, and with
``normalize`` in the recovery sweep (by ``document`` in the whole walk experiment, RULES 9
row 6). `slide` and `slide_crease` are the documents' alternatives (MOVE 8.3 and 8.4), for
controllers of your own: no rule set uses them.
"""

from pycct.character.response import respond, slide, slide_crease

__all__ = ["respond", "slide", "slide_crease"]
