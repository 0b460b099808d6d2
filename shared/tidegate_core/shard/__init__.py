"""Holds what the stages of one shard share: cache, schedule state, jobs, timers.

Called by: the stages of layer 6.
Authority: the rows. The cache derives from them, and is dropped with the shard.
Rows: jobs, timers, subscriptions, queue entries, outages.
"""
