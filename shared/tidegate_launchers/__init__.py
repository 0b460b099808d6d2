"""Launchers: each starts, finds again, cancels and reads the logs of programs on one kind of platform."""
