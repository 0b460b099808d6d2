"""Logs and metrics: one table of their names (`names.py`), and how they get out of a process; connections of HTTP servers."""
