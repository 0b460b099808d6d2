"""The process `tidegate migrate`."""
