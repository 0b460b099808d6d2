"""Heartbeat, node status, clock check, overload, and the watchdog of other nodes."""
