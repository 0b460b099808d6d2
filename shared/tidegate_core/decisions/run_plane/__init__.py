"""The run plane's decisions: fire, count, admit, launch, finish, control. One file each, all pure (DESIGN 6)."""
