"""Turns events and ticks into evidence, and evidence into jobs.

Called by: the shard's loops, for inbox rows of events and for deadlines.
Authority: the evidence log, in order of append time. An event counts once for each schedule.
Rows: evidence, chunks of the evidence log, jobs, the cursor of ticks. Counted inbox rows are deleted here.
A decision that depends on time waits for the low watermark: no earlier event may be unread.
"""
