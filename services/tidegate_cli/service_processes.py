"""Service functions that commands call, such as a node or `init`. Each is imported by name when it is needed.

Services must not import each other, so the command line names them as strings. The installed distribution has all of them.
"""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType
from typing import Any

import typer

NODE = "tidegate_node.main:run"
API = "tidegate_api.main:run"
INIT = "tidegate_node.commands.init_command:run"
MIGRATE = "tidegate_node.commands.migrate.migrate_command:run"
GROW = "tidegate_node.commands.grow.grow_command:run"
AUDIT = "tidegate_node.commands.audit.audit_command:run"
NODE_SETTINGS = "tidegate_node.bootstrap:effective_settings"
API_SETTINGS = "tidegate_api.bootstrap:effective_settings"


def become(process: str, **options: Any) -> None:
    """Runs a process to its end and exits with its code."""
    raise typer.Exit(call(process, **options))


def call(process: str, **options: Any) -> Any:
    """Calls a function of a service and returns its result."""
    module, _, function = process.partition(":")
    return getattr(_loaded(module), function)(**options)


def _loaded(module: str) -> ModuleType:
    """Imports a module with garbage collection off, and freezes the new objects.

    Hundreds of modules create so many objects that the collector would run dozens of times without freeing any. They live as long
    as the process, so the collector never scans them.
    """
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()
