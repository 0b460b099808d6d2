"""Subcommands that are imported when they are called, so that `tidegate --help` is quick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A module whose `app` is a Typer app, and the line of the help."""

    module: str
    help: str


class LazySubcommand(TyperCommand):
    """Stands in for a subcommand in lists; becomes the real one when it is called."""

    def __init__(self, name: str, subcommand: Subcommand) -> None:
        super().__init__(name, help=subcommand.help, callback=None)
        self._module = subcommand.module

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        real = typer.main.get_command(import_module(self._module).app)
        return real.make_context(info_name, args, parent=parent, **extra)


class LazyGroup(TyperGroup):
    """A group whose subcommands come from `SUBCOMMANDS`, in that order."""

    SUBCOMMANDS: Mapping[str, Subcommand] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.SUBCOMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = self.SUBCOMMANDS.get(cmd_name)
        return None if found is None else LazySubcommand(cmd_name, found)
