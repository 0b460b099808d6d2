"""The store on DynamoDB: tables, transactions and their outcomes, behind the store's port.

Only a service's `bootstrap.py` imports it; it knows no other adapter.
"""
