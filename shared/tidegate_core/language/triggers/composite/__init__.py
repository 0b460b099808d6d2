"""Triggers that combine others: `all_of`, `any_of` and `at_least`."""
