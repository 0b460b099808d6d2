"""Facts about topics that a node needs: growth, lost offsets, readings that are stuck."""
