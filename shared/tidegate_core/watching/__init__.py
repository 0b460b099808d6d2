"""What nodes say of themselves, and how others notice that one of them, or a shard of it, stands still."""
