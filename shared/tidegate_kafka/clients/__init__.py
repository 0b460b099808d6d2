"""What all Kafka clients share: configuration, security, logging, threads, reachability."""
