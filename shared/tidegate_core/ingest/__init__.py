"""Turns records of topics into inbox rows, once each.

Called by: the loops of a topic partition in `ownership`.
Authority: the cursor row of a topic partition. A move of the cursor and the rows of its records are one transaction.
Rows: cursors, inbox rows, marks of events that were counted already.
If the node dies between reading and moving, the records are read again and meet the same keys.
A record that cannot be parsed becomes a dead letter before the cursor passes it.
"""
