"""The audit: what should have happened, recomputed from what is written down, compared with what did (DESIGN 9, I1)."""
