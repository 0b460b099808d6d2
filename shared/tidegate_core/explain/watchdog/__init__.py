"""Judges from rows alone whether the promises of a shard hold: fires, messages, runs and readings that are late.

Called by: each node, about shards of other nodes. A frozen process cannot report itself.
"""
