"""Requests and their receipts."""
