"""Ports: the protocols that the core's drivers use and the adapters implement."""
