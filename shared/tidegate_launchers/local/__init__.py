"""Launcher `local`: runs programs as processes of the node's host, each under a supervisor."""
