"""Sweeps of a shard: each restores a timer row or a subscription that a crash left out.

Called by: the shard's loops, every few seconds and after a take-over.
Authority: none. A sweep compares rows that other packages wrote, and writes what they would have written.
"""
