"""Conversion between Python objects and C values; the only place that does it.

`values` converts single arguments and raises the errors that name them; `plain` does so without
compiled code. `vector_rows` reads arrays of vectors row by row, and `save_format` defines the bytes
of saved characters.

May import `runtime` and `geometry`.
"""
