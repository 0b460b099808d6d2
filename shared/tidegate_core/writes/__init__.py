"""Builds every conditional write of tidegate, as values; this package sends nothing.

Called by: all layers above, the API's start gate and dead-letter service, and `tidegate migrate`.
Authority: the store evaluates each condition. Each stands next to the invariant that it keeps.
Rows: all. `docs/internals/guarantees.md` defines the invariants I1 to I8.
"""
