"""Delivers due messages in slot order, and stores the delivery position up to which all deliveries are complete."""
