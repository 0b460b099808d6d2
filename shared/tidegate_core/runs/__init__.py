"""Carries a run from its submission to its end: attempts, reports, retries, the record of the end.

Called by: the shard's loops. The start gate and reports write the run's row without the owner.
Authority: the run row. One conditional write lets one driver start an attempt.
States: submitting, submitted, running, lost, and the terminal states of `RunState`.
Rows: runs, ledger, history, outbox.
"""
