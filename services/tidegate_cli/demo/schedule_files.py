"""Fills in the pipeline's schedule files: paths of programs and data, begin and end of the landing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tidegate_cli.demo.demo_plan import DemoPlan
from tidegate_core.language.values.instants import format_instant, from_datetime
from tidegate_pipelines.input_data import Source
from tidegate_ports.common.yaml_core_schema import CoreSchemaLoader

PLACE = re.compile(r"\{\{(\w+)\}\}")


def schedule_documents(names: tuple[str, ...], plan: DemoPlan, source: Source, lake: Path) -> list[dict[str, Any]]:
    """Returns the documents of the named schedules, ready to be applied."""
    package = files("tidegate_pipelines")
    values = {
        "programs": str(package),
        "lake": str(lake),
        "flights": str(source.flights),
        "weather": str(source.weather),
        "expression": plan.expression,
        "period_s": str(plan.period.seconds),
        "start": format_instant(from_datetime(plan.start)),
        "end": format_instant(from_datetime(plan.end)),
    }
    texts = [(package / "schedules" / f"{name}.yaml").read_text(encoding="utf-8") for name in names]
    return [filled_in(yaml.load(text, CoreSchemaLoader), values) for text in texts]  # noqa: S506 - a safe one


def filled_in(document: Any, values: Mapping[str, str]) -> Any:
    """Returns the document with each `{{name}}` in its texts replaced.

    Texts are replaced after parsing, so a path with a quote or a backslash needs no escaping.

    Raises:
        KeyError: A name has no value.
    """
    match document:
        case str():
            return PLACE.sub(lambda place: values[place.group(1)], document)
        case list():
            return [filled_in(part, values) for part in document]
        case dict():
            return {name: filled_in(part, values) for name, part in document.items()}
        case _:
            return document
