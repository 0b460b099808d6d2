"""`tidegate partitions grow`."""
