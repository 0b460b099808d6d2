"""Questions to the brokers: topics, ids, offsets, and the making of topics."""
