"""`tidegate migrate`: from one version of rows to the next, with nodes of both releases side by side (decision 26)."""
