"""Events of one shard: subscriptions, the evidence log, end offsets, deferred inbox rows, and published events of runs.

The low watermark states the append time up to which every event is counted or lies in the inbox.
"""
