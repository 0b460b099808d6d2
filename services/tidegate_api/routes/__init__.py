"""One module per resource; a route parses, asks one service, and shows the answer."""
