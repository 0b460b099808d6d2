"""The processes that this command line starts in its own place: each is loaded by name, when it is asked for.

By name, because a service never imports another one; the installed distribution has all of them.
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
    """Imports a module and all that it needs, which live as long as the process.

    Hundreds of modules make so many objects that the garbage collector would run dozens of times, and free nothing. So it is off until
    all are there, and never looks at them.
    """
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()
