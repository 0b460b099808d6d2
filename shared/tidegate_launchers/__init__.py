"""Launchers: each starts, finds and cancels programs on one kind of platform, and reads their logs."""
