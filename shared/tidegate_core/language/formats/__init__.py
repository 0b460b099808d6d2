"""Forms in which documents come: bare JSON, CloudEvents, Clockwork, CDAP; schemas and field tables."""
