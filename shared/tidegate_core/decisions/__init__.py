"""What tidegate decides: sans-I/O actors and the pure decisions that they run."""
