"""Reads schedules and event sources from YAML files, and finds the line of a problem."""

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
"""Bytes of one file of definitions; a larger file is not written by hand."""
DEPTH_MAX = 100
"""Levels of lists and mappings in a document. A schedule has about a dozen; YAML's loader fails at about 250."""
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = ("schedule", "source")
"""Values of a document's `kind`."""

TEXT_PLACES = (
    ("labels",),
    ("target", "program", "args"),
    ("target", "program", "conf"),
    ("target", "program", "env"),
    ("target", "program", "properties"),
)
"""Lists and mappings that hold only texts: `args: [1.10, 0x1F, true]` are these three texts."""
_SIGNS = "*&|>%@`"
"""First characters with a meaning in YAML: a text that begins with one must be quoted."""


class _Loader(CoreSchemaLoader):
    """Keeps keys as written, and refuses more than `DEPTH_MAX` levels. YAML's own loaders would raise RecursionError."""

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
                # Without this, a variable with the name 1.10 would become 1.1.
                key.tag = TEXT
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        # JSON writes a character beyond 16 bits as two escapes. YAML reads them as two surrogates.
        text = super().construct_scalar(node)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            problem = "has a lone surrogate (\\uD800 to \\uDFFF); write the whole character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


Step: TypeAlias = str | int
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """One schedule or event source of a file.

    Attributes:
        path: File that holds it; `-` is standard input.
        kind: `schedule` or `source`.
        spec: Fields of the definition; a program's `file` is absolute if that was asked for.
        node: Parsed YAML with line numbers.
    """

    path: Path
    kind: str
    spec: Mapping[str, Any]
    node: yaml.Node

    @property
    def title(self) -> str:
        return f"{self.spec.get('namespace', '?')}/{self.spec.get('name', '?')}"

    def place_of(self, field: str) -> str:
        """Returns `file:line` of a field. If the field is not in the file, it is the place of the nearest parent."""
        node = self.node
        for step in steps_of(field):
            inner = _child(node, step)
            if inner is None:
                break
            node = inner
        return _place(self.path, node)


def read_documents(source: Path, kind: str | None = "schedule", *, absolute: bool = True) -> list[ScheduleDocument]:
    """Returns the definitions of a file, or of all YAML and JSON files of a folder tree, in order. Hidden files are skipped.

    Args:
        source: File or folder; `-` is standard input.
        kind: Kind that the files must hold, and kind of a document without `kind`. None takes all kinds; each document must then have
            `kind`.
        absolute: Whether a program's relative `file` is resolved from the YAML's folder, or stays as written.

    Raises:
        CommandFailed: There is no definition, a file is no YAML, a kind is wrong, or two have the same name; with file and line.
    """
    documents = [document for path in _files(source) for document in _read(path, kind, absolute=absolute)]
    if not documents:
        raise CommandFailed(f"{name_of(source)}: has no {kind or 'definition'}", Exit.USAGE)
    _refuse_duplicates(documents)
    if kind is not None:
        _refuse_other_kinds(documents, kind)
    return documents


def read_schedules(source: Path, *, absolute: bool = True) -> list[ScheduleDocument]:
    """Returns the schedules of a file or folder. Event sources in it are skipped.

    Raises:
        CommandFailed: As `read_documents`; or there is no schedule.
    """
    documents = [document for path in _files(source) for document in _read(path, "schedule", absolute=absolute)]
    schedules = [document for document in documents if document.kind == "schedule"]
    if not schedules:
        raise CommandFailed(f"{name_of(source)}: has no schedule", Exit.USAGE)
    _refuse_duplicates(schedules)
    return schedules


def _refuse_other_kinds(documents: Sequence[ScheduleDocument], kind: str) -> None:
    """Refuses a definition of another kind before anything is sent; otherwise half of a mixed file would be applied."""
    for document in documents:
        if document.kind != kind:
            raise CommandFailed(
                f"{document.place_of('')}: {document.title} is a {document.kind}, not a {kind}; "
                "use `tidegate apply -f` for both",
                Exit.USAGE,
            )


def _refuse_duplicates(documents: Sequence[ScheduleDocument]) -> None:
    """Refuses two definitions with the same name. Otherwise each apply would replace the first by the second, again and again."""
    first: dict[tuple[str, str], ScheduleDocument] = {}
    for document in documents:
        kind = document.kind
        other = first.setdefault((kind, document.title), document)
        if other is not document:
            raise CommandFailed(
                f"{document.place_of('')}: {kind} {document.title} is already defined at {other.place_of('')}; "
                f"give each {kind} its own name",
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
        raise CommandFailed(f"{source}: does not exist; give a file or folder", Exit.USAGE)
    return [source]


def _is_hidden(path: Path) -> bool:
    """Whether the file or one of its folders begins with a dot. Such files belong to an editor or git.

    Kubernetes also uses such folders: it mounts each file of a ConfigMap as a link into one.
    """
    return any(part.startswith(".") for part in path.parts)


def _read(path: Path, wanted: str | None, *, absolute: bool) -> Iterator[ScheduleDocument]:
    text = text_of(path, FILE_BYTES_MAX)
    try:
        # An empty document, for example after a trailing `---`, is skipped.
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
            problem = f"{' and '.join(missing)} is missing or no text; quote a number, true, false or null"
            raise CommandFailed(f"{_place(path, node)}: {problem}", Exit.USAGE)
        kind = _kind_of(spec, wanted, _place(path, node))
        yield ScheduleDocument(path, kind, with_absolute_file(spec, folder_of(path)) if absolute else spec, node)


def _place(path: Path, node: yaml.Node) -> str:
    return f"{name_of(path)}:{node.start_mark.line + 1}"


def _kind_of(spec: Mapping[str, Any], wanted: str | None, place: str) -> str:
    """Returns the kind of a document. An unknown kind counts as the wanted one: the API then reports it with the other problems."""
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
    """Returns a document with texts as written where YAML has read numbers or booleans."""
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
        # The last entry of a name counts: merged entries (`<<`) come before the mapping's own.
        written = {key.value: item for key, item in node.value}
        return {name: _text_of(each, written.get(name)) for name, each in value.items()}
    return value


def _text_of(value: Any, node: yaml.Node | None) -> Any:
    return node.value if isinstance(node, yaml.ScalarNode) and isinstance(value, bool | int | float) else value


def _quoting_hint(text: str, error: yaml.MarkedYAMLError) -> str:
    """Returns a hint for an unquoted text that begins with a YAML sign, such as `*/5 * * * *`, or contains one."""
    lines, mark = text.split("\n"), error.problem_mark
    if mark is None or mark.line >= len(lines):
        return ""
    if error.problem and error.problem.startswith(("mapping values are not allowed", "found unhashable key")):
        return "; quote a text with a colon or braces in it"
    line = lines[mark.line]
    # The mark points at the sign, or at the character after it.
    start = next((at for at in (mark.column, mark.column - 1) if 0 <= at < len(line) and line[at] in _SIGNS), None)
    if start is None:
        return ""
    is_in_flow = any(line[:start].count(opening) > line[:start].count(closing) for opening, closing in ("{}", "[]"))
    value = re.split(r"[,}\]]| #" if is_in_flow else " #", line[start:], maxsplit=1)[0].strip()
    return f'; quote it: "{value}"' if '"' not in value else "; quote it"


def with_absolute_file(spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the spec with a program's relative `file` resolved from the folder of the YAML file."""
    target = spec.get("target")
    program = target.get("program") if isinstance(target, dict) else None
    file = program.get("file") if isinstance(program, dict) else None
    if not isinstance(target, dict) or not isinstance(program, dict) or not isinstance(file, str) or not file:
        return dict(spec)
    if "://" in file or Path(file).is_absolute():
        return dict(spec)
    # Links are not resolved: a deployment may switch a link `current` to the next release.
    absolute = os.path.abspath(folder / file)  # noqa: PTH100 - resolve() follows links
    return {**spec, "target": {**target, "program": {**program, "file": absolute}}}


def _child(node: yaml.Node, step: Step) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        # The last entry counts: merged keys (`<<`) come before the mapping's own.
        for key, value in reversed(node.value):
            if key.value == step:
                # A scalar is on the line of its key; a block begins on the next line, where a reader looks for the problem.
                found: yaml.Node = value
                return found
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    return None
