"""Carries out effects of the core: store calls, records, launches, wake-ups."""
