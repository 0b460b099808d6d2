"""A job's side of shared limits: what it asks for, its queue entries, and whether it was offered a permit.

The coordinator's side is `admission/limit_coordinator.py`.
"""
