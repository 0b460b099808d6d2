"""Templates in arguments: `${name}` from a closed list, and `$${` for a literal `${`. They contain no code and are bounded in size.

An apply checks the templates. Admission resolves them once, and the run stores the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

from tidegate_core.language.targets.programs import Program, PysparkProgram
from tidegate_core.language.triggers import EventTrigger, RunStatusTrigger, TimeTrigger, Trigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.problems import MAX_PROBLEMS, Problem, did_you_mean

MAX_RESOLVED_BYTES = 65_536
"""Size of all resolved texts of a run, as JSON in UTF-8. The run's item also has the rest of the schedule, the upstream run's
texts and outputs, and its own outputs, 64 KiB each; the sum is below 400 KB. The limit is also below the 128 KiB that Linux
allows for one argument."""

PLAIN_NAMES = ("nominal", "interval_start", "interval_end", "correlation", "run.id", "attempt", "upstream.run_id")
ALL_NAMES = (*PLAIN_NAMES, "upstream.args[n]", "upstream.outputs.<key>")

_PROGRAM = "target.program."
_TOKEN = re.compile(r"\$\$\{|\$\{([^{}]{0,256})\}|\$\{")
_ARGUMENT = re.compile(r"upstream\.args\[(\d{1,3})\]", re.ASCII)
_OUTPUT = re.compile(r"upstream\.outputs\.([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a template, such as `nominal` or `upstream.args[0]`."""

    name: str


Template: TypeAlias = tuple[str | Variable, ...]


class TemplateError(ValueError):
    """A text is no valid template. The column counts from 1."""

    def __init__(self, problem: str, column: int, hint: str = "") -> None:
        self.problem = f"{problem} (column {column})"
        self.hint = hint
        super().__init__(self.problem)


class Unresolved(ValueError):
    """A value is missing or too large at admission. The run fails with the error `config`; its schedule continues."""

    def __init__(self, place: str, problem: str) -> None:
        self.field = place
        self.problem = problem
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class UpstreamValues:
    """Values of the upstream run that a `run_status` leaf counted."""

    run_id: str
    args: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunValues:
    """Values for the variables of templates.

    Attributes:
        run_id: Id of the run.
        attempt: Number of the attempt.
        nominal: Nominal time of the job; for an event trigger the instant at which it was satisfied.
        interval: Data interval, for a time trigger.
        correlation: Correlation key of the job, if its trigger has one.
        upstream: Values of the upstream run, if one caused the job.
    """

    run_id: str
    attempt: int
    nominal: Instant
    interval: tuple[Instant, Instant] | None = None
    correlation: str | None = None
    upstream: UpstreamValues | None = None


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program for a launcher, with all templates resolved."""

    file: str
    args: tuple[str, ...]
    conf: Mapping[str, str]
    env: Mapping[str, str]


@lru_cache(maxsize=1024)
def parse_template(text: str) -> Template:
    """Returns the literal parts and variables of a text.

    Raises:
        TemplateError: A variable is unknown, or a `${` has no end. The error names the nearest known variable.
    """
    parts: list[str | Variable] = []
    position = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[position : token.start()])
        position = token.end()
        if token[0] == "$${":
            parts.append("${")
        elif token[1] is None:
            raise TemplateError("${ has no }", token.start() + 1, "write $${ for a literal ${")
        else:
            parts.append(_variable(token[1], token.start() + 1))
    parts.append(text[position:])
    return tuple(part for part in parts if part != "")


def _variable(name: str, column: int) -> Variable:
    if name in PLAIN_NAMES or _ARGUMENT.fullmatch(name) or _OUTPUT.fullmatch(name):
        return Variable(name)
    hint = did_you_mean(name, ALL_NAMES)
    raise TemplateError(f"${{{name[:64]}}} is unknown", column, hint)


def template_problems(trigger: Trigger, program: Program) -> list[Problem]:
    """Returns the first problems of the program's templates with the variables that the trigger provides."""
    return list(islice(_problems(trigger, _templates(program)), MAX_PROBLEMS))


def text_problems(trigger: Trigger, texts: Iterable[tuple[str, str]]) -> list[Problem]:
    """Returns the first problems of other templates of a schedule, given as pairs of field and text."""
    return list(islice(_problems(trigger, texts), MAX_PROBLEMS))


def _problems(trigger: Trigger, texts: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    for place, text in texts:
        try:
            template = parse_template(text)
        except TemplateError as error:
            yield Problem(place, error.problem, error.hint)
            continue
        for part in template:
            reason = _unavailable(part.name, trigger) if isinstance(part, Variable) else None
            if reason is not None and isinstance(part, Variable):
                yield Problem(place, f"${{{part.name}}} has no value here", reason)


def _unavailable(name: str, trigger: Trigger) -> str | None:
    """Returns why the trigger does not provide a variable, or None if it does."""
    if name.startswith("interval_"):
        return None if isinstance(trigger, TimeTrigger) else "only time triggers have a data interval"
    if name == "correlation":
        alone = isinstance(trigger, RunStatusTrigger)
        paired = alone or (isinstance(trigger, EventTrigger) and trigger.correlate is not None)
        return None if paired else "it needs an all_of trigger with correlate, or a single run_status trigger"
    if name.startswith("upstream."):
        leaves = trigger.leaves() if isinstance(trigger, EventTrigger) else ()
        upstreams = sum(isinstance(leaf, RunStatusTrigger) for leaf in leaves)
        return None if upstreams == 1 else f"it needs one run_status trigger, and there are {upstreams or 'none'}"
    return None


def _templates(program: Program) -> Iterator[tuple[str, str]]:
    for number, argument in enumerate(program.args):
        yield f"{_PROGRAM}args[{number}]", argument
    if isinstance(program, PysparkProgram):
        yield from ((f"{_PROGRAM}conf.{name}", value) for name, value in program.conf.items())
    yield from ((f"{_PROGRAM}env.{name}", value) for name, value in program.env.items())


def resolve_program(program: Program, values: RunValues) -> ResolvedProgram:
    """Returns the program with all templates resolved.

    Raises:
        Unresolved: The result is too large, or a value is missing, such as an output that the upstream run did not report.
            The run fails with the error's text.
    """
    resolved = {place: resolve_text(place, text, values) for place, text in _templates(program)}
    sizes = {place: _size_of(place, text) for place, text in resolved.items()}
    total = sum(sizes.values())
    if total > MAX_RESOLVED_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        raise Unresolved(
            largest,
            f"has {sizes[largest]} bytes when resolved, all texts together {total}, at most {MAX_RESOLVED_BYTES}",
        )
    conf = program.conf if isinstance(program, PysparkProgram) else {}
    return ResolvedProgram(
        file=program.file,
        args=tuple(resolved[f"{_PROGRAM}args[{number}]"] for number in range(len(program.args))),
        conf={name: resolved[f"{_PROGRAM}conf.{name}"] for name in conf},
        env={name: resolved[f"{_PROGRAM}env.{name}"] for name in program.env},
    )


def resolve_text(place: str, text: str, values: RunValues) -> str:
    """Returns a text with all variables resolved. Raises Unresolved, which names `place`."""
    parts = parse_template(text)
    return "".join(part if isinstance(part, str) else _value(place, part.name, values) for part in parts)


def _size_of(place: str, text: str) -> int:
    """Returns the bytes of a text in the run's item. Raises Unresolved for a text that no command line can contain."""
    if "\x00" in text:
        raise Unresolved(place, "contains a NUL character when resolved")
    try:
        return len(json.dumps(text, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise Unresolved(place, "contains half a surrogate pair when resolved") from error


def _value(place: str, name: str, values: RunValues) -> str:
    found = _lookup(name, values)
    if found is None:
        raise Unresolved(place, _why_missing(name, values))
    return found


def _lookup(name: str, values: RunValues) -> str | None:
    match name:
        case "nominal":
            return format_instant(values.nominal)
        case "interval_start":
            return None if values.interval is None else format_instant(values.interval[0])
        case "interval_end":
            return None if values.interval is None else format_instant(values.interval[1])
        case "correlation":
            return values.correlation
        case "run.id":
            return values.run_id
        case "attempt":
            return str(values.attempt)
        case _:
            return None if values.upstream is None else _upstream(name, values.upstream)


def _upstream(name: str, upstream: UpstreamValues) -> str | None:
    if name == "upstream.run_id":
        return upstream.run_id
    argument = _ARGUMENT.fullmatch(name)
    if argument is not None:
        number = int(argument[1])
        return upstream.args[number] if number < len(upstream.args) else None
    output = upstream.outputs.get(name.removeprefix("upstream.outputs."))
    if output is None or isinstance(output, str):
        return output
    return json.dumps(output, separators=(",", ":"), ensure_ascii=False)


def _why_missing(name: str, values: RunValues) -> str:
    if not name.startswith("upstream."):
        return f"${{{name}}} has no value for this run"
    if values.upstream is None:
        return f"${{{name}}} has no value: no upstream run caused this one"
    if name.startswith("upstream.args"):
        return (
            f"${{{name}}} has no value: upstream run {values.upstream.run_id} has {len(values.upstream.args)} arguments"
        )
    reported = ", ".join(sorted(values.upstream.outputs)[:12]) or "none"
    return f"${{{name}}} has no value: upstream run {values.upstream.run_id} reported these outputs: {reported}"
