"""`tidegate dlq`: lists, shows, replays and drops dead letters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ActorOption, ReasonOption, recent_moment_of
from tidegate_cli.exit_codes import CommandFailed, Exit, exit_of
from tidegate_cli.interrupts import sigterm_as_exit
from tidegate_cli.output import Format, OutputOption, note, show, show_first, show_list, write_bytes

if TYPE_CHECKING:
    from tidegate_client.views import DeadLetterAnswer

app = typer.Typer(
    help="Dead letters: records that could not be processed.",
    no_args_is_help=True,
    add_completion=False,
)

LetterArgument = Annotated[str, typer.Argument(metavar="LETTER", help="Id of the dead letter, such as requests-3-17.")]
LettersArgument = Annotated[
    list[str], typer.Argument(metavar="LETTER...", help="Ids of dead letters, as `dlq list` prints them.")
]
AgainOption = Annotated[bool, typer.Option("--again", help="Also dead letters that were replayed or dropped before.")]


class Queue(StrEnum):
    """A dead-letter topic."""

    REQUESTS = "requests"
    EVENTS = "events"
    RUNS = "runs"


@app.command("list")
def list_letters(
    queue: Annotated[
        Queue | None, typer.Option("--queue", "-q", help="Only of this dead-letter topic; messages are in requests.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", help="Only records that came from this topic, or were to be delivered to it."),
    ] = None,
    error_class: Annotated[
        str | None, typer.Option("--error-class", help="Only errors of this class, such as invalid.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only dead letters since this time: RFC 3339, or a duration ago such as 12h."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only of this namespace; messages carry no namespace.")
    ] = None,
    handled: Annotated[bool, typer.Option("--all", help="Also dead letters that were replayed or dropped.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most dead letters to show.")] = 1_000,
    output: OutputOption = Format.TABLE,
) -> None:
    """List dead letters, oldest first in each topic partition. `-o name` prints ids for replay and drop."""
    columns = [
        ("letter", lambda view: view.id),
        ("at", lambda view: view.at),
        ("class", lambda view: view.error_class),
        ("topic", lambda view: view.topic),
        ("namespace", lambda view: view.namespace),
        ("bytes", lambda view: view.size_bytes),
        ("handled", lambda view: view.mark.state if view.mark else None),
        ("message", lambda view: view.message),
    ]
    begin = recent_moment_of("--since", since)
    with api_client() as api:
        found = api.dead_letters(
            None if queue is None else queue.value,
            topic=topic,
            error_class=error_class,
            namespace=namespace,
            since=begin,
            handled=handled,
        )
        show_first(found, limit, columns, output, "--queue, --error-class and --since")


@app.command("show")
def show_letter(
    letter: LetterArgument,
    value: Annotated[
        bool, typer.Option("--value", help="Write only the record's value, unchanged, to a file or a pipe.")
    ] = False,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a dead letter with key, value and headers. Bytes that are no printable text are shown as base64."""
    if value and sys.stdout.isatty():
        raise CommandFailed("--value: the bytes may control your terminal; send them to a file or a pipe", Exit.USAGE)
    with api_client() as api:
        if value:
            write_bytes(api.dead_letter_value(letter))
        else:
            show(api.dead_letter(letter), output)


@app.command()
def replay(
    letters: LettersArgument,
    again: AgainOption = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Produce the records again, unchanged, to the topics that they came from. First fix the cause of the error.

    A dead letter is replayed once: a repeat, and each copy of it, is answered `unchanged`.
    """
    with api_client() as api:
        _each(letters, lambda each: api.replay_dead_letter(each, again=again, reason=reason, actor=actor), output)


@app.command()
def drop(
    letters: LettersArgument,
    again: AgainOption = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Mark dead letters as dropped. From then on only `dlq list --all` shows them."""
    with api_client() as api:
        _each(letters, lambda each: api.drop_dead_letter(each, again=again, reason=reason, actor=actor), output)


def _each(letters: list[str], deal_with: Callable[[str], DeadLetterAnswer], output: Format) -> None:
    """Replays or drops each dead letter, and shows the answers. An error does not stop the others, except when the API is unreachable.

    The exit code is the worst error's. If the command is interrupted, it shows the answers so far and lists the open dead letters.
    """
    from tidegate_client import ApiUnreachable, TidegateError

    done: list[DeadLetterAnswer] = []
    failed: list[TidegateError] = []
    interrupt: BaseException | None = None
    try:
        with sigterm_as_exit():
            for letter in letters:
                try:
                    done.append(deal_with(letter))
                except TidegateError as error:
                    note(f"{letter}: {error}")
                    failed.append(error)
                    if isinstance(error, ApiUnreachable):
                        break  # Each of the others would wait for the same timeout.
    except (KeyboardInterrupt, SystemExit) as end:
        interrupt = end
    columns = [
        ("letter", lambda view: view.id),
        ("status", lambda view: view.status),
        ("handled", lambda view: view.mark.state if view.mark else None),
        ("topic", lambda view: view.topic),
    ]
    show_list(done, columns, output)
    untried = letters[len(done) + len(failed) :]
    if interrupt is not None:
        note(f"interrupted: {len(done)} of {len(letters)} dead letters are done; {untried[0]} is uncertain")
        untried = untried[1:]
    if untried:
        note(f"not tried: {' '.join(untried)}")
    if interrupt is not None:
        raise interrupt
    if failed:
        raise CommandFailed(
            f"{len(letters) - len(done)} of {len(letters)} dead letters are not done", max(map(exit_of, failed))
        )
