"""Builds every conditional write of tidegate. Each condition stands next to the invariant that it keeps.

Called by: all layers above, the API's start gate and dead-letter service, and `tidegate migrate`. Authority: the
store evaluates each condition. `docs/guarantees.md` defines the invariants I1 to I8. Rows: all, as values. This
package sends nothing.
"""
