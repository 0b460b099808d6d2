"""The store in memory: the second implementation of the store's port. For the simulators, and for tests."""
