"""Rounding noise: what other processors would do to a chapter, on this one.

Processors add in different orders and approximate `exp` in different ways, so their results differ
in the last bit. In a kernel with noise, each such result has its last bit changed at random, in
torch and in NumPy. An output that changes with it would not be the same everywhere.

What changes a number is a hash of its bits and a seed, not a stream of random numbers: equal
computations keep giving equal results, which chapters may rely on.
"""
