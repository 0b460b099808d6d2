"""The delivery plane: one-shot messages to topics, made for throughput and lateness (DESIGN 5)."""
