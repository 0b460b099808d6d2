"""Sweeps of a shard: each restores rows of active schedules that the store has lost, such as a timer row or a subscription.

Called by: the shard's loops, which run from its recovery on.
Authority: none. A sweep compares rows that other packages wrote, and writes the rows that they would have written.
"""
