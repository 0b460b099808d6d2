"""`tidegate dev`: starts and supervises a real Kafka broker, DynamoDB Local, nodes and the API on this machine."""
