"""The commands, one module per noun. They hold no logic: each calls the client and shows the answer."""
