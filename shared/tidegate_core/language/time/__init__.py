"""Calendars: zones, cron fields, and the walk over a wall clock that maps them to instants (SEMANTICS 1, 2)."""
