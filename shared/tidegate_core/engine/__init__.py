"""Runs operations and transactions of an actor; knows no schedule.

Called by: all layers above, and the two drivers: the node's and the simulation's.
Authority: the order of a shard's single writer. Decisions share a transaction, at most sixteen together.
An operation is a generator: it yields effects and resumes with their results. So it can be stopped after each effect.
"""
