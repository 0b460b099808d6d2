"""Reads schedules and sources from YAML files, and finds the line that a problem is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tidegate_cli.exits import CommandFailed, Exit
from tidegate_cli.input_files import STANDARD_INPUT, folder_of, name_of, text_of
from tidegate_ports.unique_keys import refuse_twin_keys

FILE_BYTES_MAX = 10 * 1_048_576
"""One file of definitions; what is larger is no hand-written YAML."""
DEPTH_MAX = 100
"""Levels of lists and mappings below a document's own fields; a schedule has a dozen, and YAML's loader ends at some 250."""
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = ("schedule", "source")
"""What a document's `kind` may be."""

TEXT = "tag:yaml.org,2002:str"
TIMESTAMP = "tag:yaml.org,2002:timestamp"
MERGE = "tag:yaml.org,2002:merge"
_AS_WRITTEN = re.compile(r"[-+]?(?:0[\d_]+|\d[\d_]*(?::\d+)+(?:\.[\d_]*)?)", re.ASCII)
""":" counts in sixties, and a zero at the beginning in eights."""


class _Loader(yaml.SafeLoader):
    """Leaves times, dates and keys as they are written: a schedule's are texts, in `instant` as in the arguments of a program.

    So are numbers that YAML reads as others than people: `22:00` would be 1320, and `010` eight, while `08` is a text anyhow.

    Refuses a key that stands twice in one mapping, and more than `DEPTH_MAX` levels, with which YAML's own loaders end in a RecursionError.
    """

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth > DEPTH_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"is nested more than {DEPTH_MAX} levels deep", problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        is_plain = kind is yaml.ScalarNode and implicit[0]
        return TEXT if is_plain and (tag == TIMESTAMP or _AS_WRITTEN.fullmatch(value)) else tag

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = refuse_twin_keys(super().compose_mapping_node(anchor))
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                # A variable called ON would be one called true.
                key.tag = TEXT
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        # JSON writes what is beyond 16 bits as two escapes, which YAML reads as two halves of a character.
        text = super().construct_scalar(node)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            problem = "has half of a character (one of two \\uD800 to \\uDFFF)"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # What a tag (`!!int foo`), or a number of thousands of digits, cannot be ends in errors of all kinds.
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            problem = f"cannot be read as {node.tag.replace('tag:yaml.org,2002:', '!!')}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


Step: TypeAlias = str | int
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """One schedule, or source, of a file.

    Attributes:
        path: Its file; `-` is standard input.
        kind: `schedule` or `source`.
        spec: Its fields, with a program's `file` made absolute where it is to be.
        node: Its YAML, with the lines.
    """

    path: Path
    kind: str
    spec: Mapping[str, Any]
    node: yaml.Node

    @property
    def title(self) -> str:
        return f"{self.spec.get('namespace', '?')}/{self.spec.get('name', '?')}"

    def place_of(self, field: str) -> str:
        """Returns `file:line` of a field, or of the nearest thing around it that is in the file."""
        node = self.node
        for step in steps_of(field):
            inner = _child(node, step)
            if inner is None:
                break
            node = inner
        return _place(self.path, node)


def read_documents(source: Path, kind: str | None = "schedule", *, absolute: bool = True) -> list[ScheduleDocument]:
    """Returns the definitions of a file, or of all YAML and JSON files of a folder and those within it, in order; hidden ones are left out.

    Args:
        source: File or folder; `-` is standard input.
        kind: Which kind it is to hold, and of which a document without `kind` is. None takes all kinds, and each says its own.
        absolute: Whether a program's relative `file` counts from the YAML's folder, or stays as it is written.

    Raises:
        CommandFailed: Nothing is there, it is no YAML, one is of another kind, or two have one name; with file and line.
    """
    documents = [document for path in _files(source) for document in _read(path, kind, absolute=absolute)]
    if not documents:
        raise CommandFailed(f"{name_of(source)}: there is no {kind or 'definition'} in it", Exit.USAGE)
    _refuse_namesakes(documents)
    if kind is not None:
        _refuse_other_kinds(documents, kind)
    return documents


def read_schedules(source: Path, *, absolute: bool = True) -> list[ScheduleDocument]:
    """Returns the schedules of a file or folder that may hold sources as well, for commands to which those are nothing.

    Raises:
        CommandFailed: As `read_documents`; or there is no schedule in it.
    """
    documents = [document for path in _files(source) for document in _read(path, "schedule", absolute=absolute)]
    schedules = [document for document in documents if document.kind == "schedule"]
    if not schedules:
        raise CommandFailed(f"{name_of(source)}: there is no schedule in it", Exit.USAGE)
    _refuse_namesakes(schedules)
    return schedules


def _refuse_other_kinds(documents: Sequence[ScheduleDocument], kind: str) -> None:
    """Before anything is sent: of a mixed file half would be applied."""
    for document in documents:
        if document.kind != kind:
            raise CommandFailed(
                f"{document.place_of('')}: {document.title} is a {document.kind} and no {kind}; "
                "`tidegate apply -f` takes both",
                Exit.USAGE,
            )


def _refuse_namesakes(documents: Sequence[ScheduleDocument]) -> None:
    """Of two with one name the last would win, and each further apply would replace the first one by it anew."""
    first: dict[tuple[str, str], ScheduleDocument] = {}
    for document in documents:
        kind = document.kind
        other = first.setdefault((kind, document.title), document)
        if other is not document:
            raise CommandFailed(
                f"{document.place_of('')}: {kind} {document.title} stands at {other.place_of('')} already; "
                f"give each {kind} a name of its own",
                Exit.USAGE,
            )


def steps_of(field: str) -> list[Step]:
    """Returns the steps of a path such as `trigger.triggers[0].count`."""
    return [int(index) if index else name for name, index in _STEP.findall(field)]


def _files(source: Path) -> Sequence[Path]:
    if source == STANDARD_INPUT:
        return [source]
    if source.is_dir():
        return sorted(
            path
            for path in source.rglob("*")
            if path.suffix in SUFFIXES and not _is_hidden(path.relative_to(source)) and path.is_file()
        )
    if not source.exists():
        raise CommandFailed(f"{source}: there is no such file or folder", Exit.USAGE)
    return [source]


def _is_hidden(path: Path) -> bool:
    """Whether it, or a folder on the way to it, begins with a dot: nobody's definitions but an editor's, git's, or Kubernetes', which
    mounts each file of a ConfigMap as a link to one in such a folder.
    """
    return any(part.startswith(".") for part in path.parts)


def _read(path: Path, wanted: str | None, *, absolute: bool) -> Iterator[ScheduleDocument]:
    text = text_of(path, FILE_BYTES_MAX)
    try:
        # Both see the same documents; one that is empty (a trailing `---`) is none.
        pairs = zip(yaml.compose_all(text, _Loader), yaml.load_all(text, _Loader), strict=True)
        found = [(node, spec) for node, spec in pairs if spec is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CommandFailed(f"{name_of(path)}:{line}: {error.problem or 'is not YAML'}", Exit.USAGE) from error
    except yaml.YAMLError as error:
        raise CommandFailed(f"{name_of(path)}: is not YAML: {error}", Exit.USAGE) from error
    for node, spec in found:
        if not isinstance(spec, dict):
            raise CommandFailed(f"{_place(path, node)}: is not a mapping of fields", Exit.USAGE)
        missing = [name for name in ("namespace", "name") if not isinstance(spec.get(name), str) or not spec[name]]
        if missing:
            raise CommandFailed(f"{_place(path, node)}: {' and '.join(missing)} is missing or no text", Exit.USAGE)
        kind = _kind_of(spec, wanted, _place(path, node))
        yield ScheduleDocument(path, kind, with_absolute_file(spec, folder_of(path)) if absolute else spec, node)


def _place(path: Path, node: yaml.Node) -> str:
    return f"{name_of(path)}:{node.start_mark.line + 1}"


def _kind_of(spec: Mapping[str, Any], wanted: str | None, place: str) -> str:
    """Returns the kind of a document. A kind that is unknown is the wanted one's: the API refuses it with the rest that is wrong."""
    given = spec.get("kind")
    if given in KINDS:
        return str(given)
    if wanted is not None:
        return wanted
    named = f'kind "{str(given)[:64]}" is unknown' if "kind" in spec else "kind is missing"
    raise CommandFailed(f"{place}: {named}; write `kind: schedule` or `kind: source`", Exit.USAGE)


def with_absolute_file(spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the spec with a program's relative `file` taken from the YAML's own folder."""
    target = spec.get("target")
    program = target.get("program") if isinstance(target, dict) else None
    file = program.get("file") if isinstance(program, dict) else None
    if not isinstance(target, dict) or not isinstance(program, dict) or not isinstance(file, str) or not file:
        return dict(spec)
    if "://" in file or Path(file).is_absolute():
        return dict(spec)
    # Links stay: who deploys by turning `current` to the next release wants that one to run.
    absolute = os.path.abspath(folder / file)  # noqa: PTH100 - resolve() follows links
    return {**spec, "target": {**target, "program": {**program, "file": absolute}}}


def _child(node: yaml.Node, step: Step) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                # A scalar's own line is that of its key; a block begins on the next one, which is where people look.
                found: yaml.Node = value
                return found
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    return None
