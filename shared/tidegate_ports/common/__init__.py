"""Helpers that several adapters and services share: settings files, YAML, shortened texts."""
