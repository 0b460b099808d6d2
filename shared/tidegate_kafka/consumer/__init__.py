"""Reads topic partitions with bounds on memory, and notices readings that are stuck."""
