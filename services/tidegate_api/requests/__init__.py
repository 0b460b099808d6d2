"""Requests that clients send: checks, submission to the topic, receipts."""
