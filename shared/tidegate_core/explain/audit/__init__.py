"""Audit: recomputes from stored rows which occurrences and messages there should be, and compares them with the rows and topics (I1).

Called by: `tidegate audit`, which reads the rows of one shard after the other.
Authority: none. It writes nothing, and names what it could not judge.
"""
