"""Sends records, with and without a membership lease."""
