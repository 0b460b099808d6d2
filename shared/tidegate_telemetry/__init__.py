"""Names of all logs and metrics (`log_events.py`, `metric_names.py`), their output, and idle connections of HTTP
servers.
"""
