"""The store in memory: second implementation of the store port, for the simulators and for tests."""
