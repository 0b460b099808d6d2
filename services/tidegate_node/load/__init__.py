"""Samplers of loads, one file each, and the effect that queries them."""
