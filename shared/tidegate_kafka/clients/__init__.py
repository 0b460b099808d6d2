"""Parts that all Kafka clients share: configuration, security, logging, threads, connectivity."""
