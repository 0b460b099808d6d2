"""`tidegate dlq`: records that could not be used, and what is done about them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ActorOption, ReasonOption, recent_moment_of
from tidegate_cli.exit_codes import CommandFailed, Exit, exit_of
from tidegate_cli.interrupts import told_of_sigterm
from tidegate_cli.output import Format, OutputOption, note, show, show_first, show_list, write_bytes

if TYPE_CHECKING:
    from tidegate_client.views import DeadLetterAnswer

app = typer.Typer(
    help="Dead letters: records that could not be used; list, show, replay, drop.",
    no_args_is_help=True,
    add_completion=False,
)

LetterArgument = Annotated[str, typer.Argument(metavar="LETTER", help="Id of the letter, such as requests-3-17.")]
LettersArgument = Annotated[list[str], typer.Argument(metavar="LETTER...", help="Ids of letters, as they were listed.")]
AgainOption = Annotated[bool, typer.Option("--again", help="Also one that was replayed or dropped before.")]


class Queue(StrEnum):
    """Which dead-letter topic."""

    REQUESTS = "requests"
    EVENTS = "events"
    RUNS = "runs"


@app.command("list")
def list_letters(
    queue: Annotated[
        Queue | None, typer.Option("--queue", "-q", help="Only of this topic; messages are among the requests.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", "-t", help="Only records that stood there, or were to be delivered there.")
    ] = None,
    error_class: Annotated[str | None, typer.Option("--error-class", help="Only these, such as invalid.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Given up then or later: RFC 3339, or so long ago, such as 12h.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only of this namespace; messages do not say theirs.")
    ] = None,
    handled: Annotated[bool, typer.Option("--all", help="Also those that were replayed or dropped.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most letters.")] = 1_000,
    output: OutputOption = Format.TABLE,
) -> None:
    """List dead letters, the oldest of each topic partition first. `-o name` prints ids for replay and drop."""
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
        bool, typer.Option("--value", help="Write only the record's value, as it was, to a file or a pipe.")
    ] = False,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a letter with key, value and headers: text where all of it can be shown, else base64."""
    if value and sys.stdout.isatty():
        raise CommandFailed("the value may hold anything, also orders to a terminal; send it to a file", Exit.USAGE)
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
    """Produce the records again, to where they stood, as they were. Mend first what they failed of.

    Each once: a letter that was replayed before is `unchanged`, and so is each copy of it.
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
    """Say that nothing is to be done about them: they are listed no more, but with --all."""
    with api_client() as api:
        _each(letters, lambda each: api.drop_dead_letter(each, again=again, reason=reason, actor=actor), output)


def _each(letters: list[str], deal_with: Callable[[str], DeadLetterAnswer], output: Format) -> None:
    """Goes through all of them, whatever becomes of one, unless nobody answers at all; ends with the worst failure's code.

    Interrupted, it shows what was done, and says which letters are open.
    """
    from tidegate_client import ApiUnreachable, TidegateError

    done: list[DeadLetterAnswer] = []
    failed: list[TidegateError] = []
    interrupt: BaseException | None = None
    try:
        with told_of_sigterm():
            for letter in letters:
                try:
                    done.append(deal_with(letter))
                except TidegateError as error:
                    note(f"{letter}: {error}")
                    failed.append(error)
                    if isinstance(error, ApiUnreachable):
                        break  # Each of the others would wait as long.
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
        note(f"interrupted: {len(done)} of {len(letters)} letters were dealt with; {untried[0]} may have been")
        untried = untried[1:]
    if untried:
        note(f"not tried: {' '.join(untried)}")
    if interrupt is not None:
        raise interrupt
    if failed:
        raise CommandFailed(
            f"{len(letters) - len(done)} of {len(letters)} letters were not dealt with", max(map(exit_of, failed))
        )
