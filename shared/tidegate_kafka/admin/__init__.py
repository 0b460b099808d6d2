"""Queries to the brokers about topics, ids and offsets, and the creation of topics."""
