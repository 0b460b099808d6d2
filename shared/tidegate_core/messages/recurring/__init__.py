"""Recurring messages: schedules whose target is a message. Fires follow from stored intervals; a fire writes no row."""
