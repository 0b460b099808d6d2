"""Triggers on events: data events, states of runs, and custom events."""
