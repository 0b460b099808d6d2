"""The node: follows its Kafka assignment, drives the core's actors and carries their effects out."""
