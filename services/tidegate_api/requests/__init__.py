"""Requests of clients: checks, submission to the topic, receipts."""
