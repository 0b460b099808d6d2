"""Triggers on time: cron, every, at, times."""
