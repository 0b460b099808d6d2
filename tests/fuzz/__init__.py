"""Hostile records on requests, events and a source's topic, through the production ingest on a bench (issue 6, item 5)."""
