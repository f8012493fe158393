"""Rounding noise: simulates what other processors would do to a chapter.

Processors add numbers in different orders and approximate `exp` differently, so their results
differ in the last bit. In a kernel with noise, torch and NumPy randomly change the last bit of
every such result. If an output changes too, it won't be the same on every machine.

The change depends on a hash of the number's bits and a seed, not on a stream of random numbers:
equal computations still give equal results, which chapters rely on.
"""
