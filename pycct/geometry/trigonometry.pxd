# cython: language_level=3
"""Sine, cosine and arc by polynomials: the same bits on every machine, which libm does not give."""

# Radians. NaN and infinity give NaN.
cpdef double sine(double x) noexcept nogil
cpdef double cosine(double x) noexcept nogil
# Angle of the point (x, y), radians, -pi to pi; 0 for the origin.
cpdef double arc(double y, double x) noexcept nogil
