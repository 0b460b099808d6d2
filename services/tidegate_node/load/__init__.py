"""Samplers of loads, one file each, and what answers an actor that asks for one."""
