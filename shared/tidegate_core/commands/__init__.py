"""Applies requests, one per schedule at a time, and answers each with a receipt.

Called by: the shard's loops, for each inbox row of kind request.
Authority: the state row of a schedule, and the two cluster items: scope suspensions and sources.
Rows: schedule states, definitions, receipts, the two items.
A request that is repeated finds its receipt and acts no second time. A crash repeats the answer, never the act.
"""
