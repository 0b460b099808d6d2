"""What can go wrong, a file for each part of the world: which faults there are, and how a seed draws them.

A new fault takes three places, and nothing else: a field with its draw in the part's file here, the line in the part itself
(`store_faults.py`, `broker_faults.py`, ...) that lets it happen and says so with `trace.bit`, and its sentence in `fault_kinds.py`.
"""
