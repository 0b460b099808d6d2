"""Targets: what a schedule starts, a program or a message."""
