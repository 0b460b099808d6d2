"""Carries a run from its submission to its end: attempts, reports, retries, the end's record.

Called by: the shard's loops. The start gate and reports write the run's row without the owner.
Authority: the run row. One conditional write lets one driver start an attempt.
States: submitting, submitted, started, and the ends of SEMANTICS.
Rows: runs, ledger, history, outbox.
"""
