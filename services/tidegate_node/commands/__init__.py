"""Commands of an operator that run as their own process: audit, grow, migrate, init."""
