"""The job's side of shared limits: its requests, its queue entries, and its admissions in rates.

The coordinator's side is `admission/limit_coordinator.py`.
"""
