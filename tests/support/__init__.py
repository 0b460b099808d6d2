"""What tests stand on: builders, harnesses, servers, the cluster of processes, and checkers. For tests only."""
