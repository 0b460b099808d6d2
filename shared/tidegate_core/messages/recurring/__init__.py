"""Schedules whose target is a message: fires from intervals of versions; a fire writes nothing."""
