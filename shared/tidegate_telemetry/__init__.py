"""Logs and metrics: one table each of their names (`log_events.py`, `metric_names.py`), and how they get out of a process; connections of HTTP servers."""
