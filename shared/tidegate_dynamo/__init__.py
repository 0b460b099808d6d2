"""DynamoDB adapter of the store port: tables, transactions and their outcomes.

Only the `bootstrap.py` of a service imports it. It imports no other adapter.
"""
