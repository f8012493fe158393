"""The mutation run: does a test turn red when a line of lnbook's core is wrong?

`python -m mutation` changes one operator, constant, condition or statement at a time, runs the
unit and property tests that reach it, and lists what no test noticed.

Why not a library: mutmut 3.8 puts a wrapper around every function, which `torch.compile` cannot
read with `fullgraph=True`, and cosmic-ray 8.7 starts a process for each mutant, which imports
torch for seconds. Here the tests are collected once, and a mutant is a fork with other code in
the functions that everybody holds.
"""
