"""Outages of one shard: spans in which no owner served it, as leases and heartbeats show them."""
