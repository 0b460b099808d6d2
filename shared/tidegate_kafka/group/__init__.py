"""Membership in the consumer group: assignment, drain, proofs of membership."""
