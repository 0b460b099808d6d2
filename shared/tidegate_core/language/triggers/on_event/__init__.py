"""Triggers on events: data, status of runs, custom events."""
