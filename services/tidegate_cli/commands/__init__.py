"""One module per noun. No logic in commands: they call the client and show what it returns."""
