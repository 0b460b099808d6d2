"""Holds what the stages of one shard share: cache, schedule state, jobs, timers, subscriptions and outages.

Called by: firing, evidence, admission, runs, messages, and all layers above.
Authority: the rows. The cache derives from them, and is dropped with the shard.
Rows: jobs, timers, subscriptions, queue entries, outages.
"""
