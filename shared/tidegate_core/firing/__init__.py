"""Turns due instants of time triggers into jobs, and decides about misfires.

Called by: the shard's loops, when a timer row is due.
Authority: `next_nominal` of the schedule's state. A timer row is only a lower bound: its reader decides again.
Rows: jobs, ledger entries of skipped occurrences, schedule states.
"""
