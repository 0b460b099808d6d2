"""The process `tidegate audit`: reads, never writes; nodes may run at the same time."""
