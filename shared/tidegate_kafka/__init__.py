"""The bus on Kafka: group membership, reading, producing, behind the bus's port.

Only a service's `bootstrap.py` imports it; it knows no other adapter.
"""
