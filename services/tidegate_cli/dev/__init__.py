"""`tidegate dev`: a real Kafka broker, DynamoDB Local, nodes and the API on this machine, started and watched together."""
