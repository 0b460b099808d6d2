"""HTTP of the API: frame of a request, bounds of bodies, page tokens, problem documents."""
