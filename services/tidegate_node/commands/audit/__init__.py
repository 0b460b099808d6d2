"""The process `tidegate audit`: reads, never writes; nodes may run meanwhile."""
