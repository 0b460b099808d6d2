"""Kafka adapter of the bus port: group membership, readers, producers and topic administration.

Only the `bootstrap.py` of a service imports it. It imports no other adapter.
"""
