"""Reads schedules and sources from YAML files, and finds the line that a problem is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.input_files import STANDARD_INPUT, folder_of, name_of, text_of
from tidegate_ports.common.yaml_core_schema import MERGE, TEXT, CoreSchemaLoader

FILE_BYTES_MAX = 10 * 1_048_576
"""One file of definitions; what is larger is no hand-written YAML."""
DEPTH_MAX = 100
"""Levels of lists and mappings below a document's own fields; a schedule has a dozen, and YAML's loader ends at some 250."""
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = ("schedule", "source")
"""What a document's `kind` may be."""

TEXT_PLACES = (
    ("labels",),
    ("target", "program", "args"),
    ("target", "program", "conf"),
    ("target", "program", "env"),
    ("target", "program", "properties"),
)
"""Lists and mappings in which the language takes texts alone: `args: [1.10, 0x1F, true]` are these three texts."""
_SIGNS = "*&|>%@`"
"""With what a text has to be quoted: it begins something else in YAML."""


class _Loader(CoreSchemaLoader):
    """Leaves keys as they are written, and refuses more than `DEPTH_MAX` levels, with which YAML's own loaders end in a RecursionError."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth > DEPTH_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"is nested more than {DEPTH_MAX} levels deep", problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                # A variable called 1.10 would be one called 1.1.
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
        # One that is empty (a trailing `---`) is none.
        found = [(node, spec) for node, spec in _documents_of(text) if spec is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = f"{error.problem or 'is not YAML'}{_quoting_hint(text, error)}"
        raise CommandFailed(f"{name_of(path)}:{line}: {problem}", Exit.USAGE) from error
    except yaml.YAMLError as error:
        raise CommandFailed(f"{name_of(path)}: is not YAML: {error}", Exit.USAGE) from error
    for node, spec in found:
        if not isinstance(spec, dict):
            raise CommandFailed(f"{_place(path, node)}: is not a mapping of fields", Exit.USAGE)
        missing = [name for name in ("namespace", "name") if not isinstance(spec.get(name), str) or not spec[name]]
        if missing:
            problem = f"{' and '.join(missing)} is missing or no text; quote what is a number, or true, false or null"
            raise CommandFailed(f"{_place(path, node)}: {problem}", Exit.USAGE)
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


def _documents_of(text: str) -> Iterator[tuple[yaml.Node, Any]]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "there is one"
            yield node, _as_written(loader.construct_document(node), node)
    finally:
        loader.dispose()


def _as_written(spec: Any, node: yaml.Node) -> Any:
    """Returns a document whose texts are what stands there, where YAML has read numbers or truths."""
    for place in TEXT_PLACES:
        spec = _with_texts(spec, node, place)
    return spec


def _with_texts(value: Any, node: yaml.Node, place: Sequence[str]) -> Any:
    if place:
        inner = _child(node, place[0]) if isinstance(value, dict) and place[0] in value else None
        return value if inner is None else {**value, place[0]: _with_texts(value[place[0]], inner, place[1:])}
    if isinstance(value, list) and isinstance(node, yaml.SequenceNode):
        return [_text_of(each, item) for each, item in zip(value, node.value, strict=True)]
    if isinstance(value, dict) and isinstance(node, yaml.MappingNode):
        # Of one name the last one: before a mapping's own stand those that were merged (`<<`).
        written = {key.value: item for key, item in node.value}
        return {name: _text_of(each, written.get(name)) for name, each in value.items()}
    return value


def _text_of(value: Any, node: yaml.Node | None) -> Any:
    return node.value if isinstance(node, yaml.ScalarNode) and isinstance(value, bool | int | float) else value


def _quoting_hint(text: str, error: yaml.MarkedYAMLError) -> str:
    """Returns what to write for a text that begins with a sign of YAML's, as `*/5 * * * *` does, or that has one within."""
    lines, mark = text.split("\n"), error.problem_mark
    if mark is None or mark.line >= len(lines):
        return ""
    if error.problem and error.problem.startswith(("mapping values are not allowed", "found unhashable key")):
        return "; quote a text with a colon or braces in it"
    line = lines[mark.line]
    # The sign itself, or what stands behind it.
    start = next((at for at in (mark.column, mark.column - 1) if 0 <= at < len(line) and line[at] in _SIGNS), None)
    if start is None:
        return ""
    is_in_flow = any(line[:start].count(opening) > line[:start].count(closing) for opening, closing in ("{}", "[]"))
    value = re.split(r"[,}\]]| #" if is_in_flow else " #", line[start:], maxsplit=1)[0].strip()
    return f'; quote it: "{value}"' if '"' not in value else "; quote it"


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
        # The last one: before a mapping's own keys stand those that were merged (`<<`).
        for key, value in reversed(node.value):
            if key.value == step:
                # A scalar's own line is that of its key; a block begins on the next one, which is where people look.
                found: yaml.Node = value
                return found
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    return None
