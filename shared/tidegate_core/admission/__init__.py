"""Turns waiting jobs into runs when constraints, overlap policy and limits allow it.

Called by: the shard's loops, when a job joins, a run ends, a window opens or an offer comes.
Authority: the conditions of one transaction on lease, schedule state and limits.
Rows: runs, permits, queue entries, counters of rates, ledger entries of jobs that end here.
A limit of several shards has one coordinator, which offers free permits; an unused offer lapses.
"""
