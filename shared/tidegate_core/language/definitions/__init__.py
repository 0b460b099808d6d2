"""Definitions: a schedule's specification, its policies, and all checks of an apply."""
