"""Conversion between Python objects and C values; the only place that does it.

`values` converts single arguments and raises the errors that name them, `vector_rows` reads arrays
of vectors row by row, `save_format` defines the bytes of saved characters, and `pickling` helps
results to be copied and pickled.

May import `runtime` and `geometry`.
"""
