"""Launcher `local`: programs as processes of the node's machine, each under a supervisor."""
