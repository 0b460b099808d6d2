"""Log set-up, and the one table with the names of all log events and metrics."""
