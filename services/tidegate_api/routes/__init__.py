"""Routes, one module per resource. A route parses the request, calls one service and returns the answer."""
