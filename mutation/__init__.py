"""Mutation testing: does a test fail when a line in lnbook's core is wrong?

`python -m mutation` changes one operator, constant, condition or statement at a time, runs the
unit and property tests that reach it, and lists the changes that no test caught.

Why not a library? mutmut 3.8 wraps every function, and `torch.compile` can't compile the wrappers
with `fullgraph=True`; cosmic-ray 8.7 starts a process for each mutant, which takes seconds to
import torch. Here the tests are collected once, and each mutant is a fork in which the existing
functions get new code.
"""
