"""Answers why, audits a shard, and watches promises; it decides nothing.

Called by: the API, the command line and a node's watchdog, each with rows that it read.
Authority: none. Every answer comes from the code that decides, run on a copy of the rows.
Rows: reads all, writes none.
"""
