"""The deterministic simulation: the production actors, decisions and transactions in an invented, hostile world.

One thread, virtual time, one seed. `python -m tests.simulation --seeds 100` runs it; a seed that fails is replayed
with `--seed S --trace`. What it models, and how a new fault is added, is in docs/internals/testing.md.
"""
