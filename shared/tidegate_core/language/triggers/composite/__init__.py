"""Triggers that combine others: all of, any of, at least."""
