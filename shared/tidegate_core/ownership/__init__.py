"""Ownership of one topic partition of the requests topic: its shards are acquired, served and given back.

Called by: the node's partition driver, one `PartitionActor` for each topic partition that the group assigned.
Authority: the lease row. Only this package raises the epoch of a shard.
States of a topic partition: acquiring (epochs are raised), recovering (rows are loaded), serving, draining.
Rows: leases, cursors at a take-over, and the timers and subscriptions that the repair sweep restores.
If a former owner writes late, the store refuses its write by the epoch. If membership is in doubt, nothing leaves the node.
"""
