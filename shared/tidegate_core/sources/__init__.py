"""From records of users' own topics to events: pure, without I/O; called by the ingest of source topics."""
