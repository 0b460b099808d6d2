"""Calendars: zones, cron fields, calendar periods, and the wall clock that maps local times to instants."""
