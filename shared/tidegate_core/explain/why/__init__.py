"""Why something runs or does not, told by the code that decides: pure functions over what the store holds."""
