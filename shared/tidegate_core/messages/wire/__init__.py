"""Sends due messages in slot order, and stores the delivery position up to which all are complete."""
