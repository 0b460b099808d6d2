"""The HTTP API: the start gate and the programs' reports, read-only views, and writes that go to Kafka."""
