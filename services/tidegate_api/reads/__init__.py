"""What is shown of the store: strongly consistent reads that decide nothing."""
