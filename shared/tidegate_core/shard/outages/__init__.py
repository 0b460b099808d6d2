"""Outages of one shard: spans in which no owner served it, as heartbeat rows show them."""
