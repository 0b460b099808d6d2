"""Readers of topic partitions: bounded memory, and detection of readings that are stuck."""
