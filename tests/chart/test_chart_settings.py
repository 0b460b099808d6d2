"""Every variable that the chart sets is a setting that a process reads: a misspelt one would be ignored in silence."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel
from pydantic_settings import BaseSettings

SETTINGS_MODULES = ("tidegate_node.bootstrap", "tidegate_api.bootstrap")


def _variables(model: type[BaseModel], prefix: str, delimiter: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _variables(kind, f"{prefix}{name}{delimiter}", delimiter)
        else:
            yield f"{prefix}{name}".upper()


def _settings_classes() -> Iterator[type[BaseSettings]]:
    for module in map(import_module, SETTINGS_MODULES):
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, BaseSettings) and found is not BaseSettings:
                yield found


def test_given_the_charts_environment_then_the_settings_know_each_variable() -> None:
    helpers = Path(__file__).parents[2] / "helm" / "tidegate" / "templates" / "_helpers.tpl"
    in_chart = set(re.findall(r'"(TIDEGATE_[A-Z_]+)"', helpers.read_text()))
    known = {
        variable
        for settings in _settings_classes()
        for variable in _variables(
            settings,
            settings.model_config.get("env_prefix") or "",
            settings.model_config.get("env_nested_delimiter") or "__",
        )
    }
    assert in_chart
    assert in_chart - known == set()
