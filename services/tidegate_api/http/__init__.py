"""HTTP parts of the API: middleware, bounds of bodies, page tokens, problem documents."""
