"""`python -m tests.chaos`: a campaign of so many minutes; the exit status is 1 where anything did not hold."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos.nemeses import NEMESES
from tests.chaos.rig.campaign import PROTOCOLS, Campaign, endless, run
from tests.chaos.rig.load import Sizes


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when nothing was found and every phase bit, else 1."""
    options = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="tidegate-chaos-")) if options.folder is None else options.folder
    _say(f"seed {seed}; everything that is written lies in {folder}")
    chosen = [NEMESES[name] for name in options.nemesis or NEMESES]
    campaign = Campaign(
        seed=seed,
        sizes=Sizes(
            options.messages, options.events, options.stops, options.burst, options.feed_count, options.expression
        ),
        phases=endless(random.Random(f"order {seed}"), chosen, options.strikes),
        seconds=options.minutes * 60,
        nodes=options.nodes,
        calm_s=options.calm,
        protocol=options.protocol,
    )
    figures = run(campaign, folder, _say)
    _say("")
    for line in figures.lines():
        _say(line)
    if options.figures is not None:
        figures.write(options.figures)
    _say(f"{'held' if figures.holds else 'DID NOT HOLD'}; seed {seed}, {folder}")
    return 0 if figures.holds else 1


def _parser() -> argparse.ArgumentParser:
    usual = Sizes()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="no strike begins half a minute later (default 10)")
    parser.add_argument("--seed", type=int, default=None, help="of order, moments and loads (default: a new one)")
    parser.add_argument("--nodes", type=int, default=3, help="that serve (default 3)")
    parser.add_argument(
        "--protocol", choices=PROTOCOLS, default=PROTOCOLS[0], help="of the nodes' group (default %(default)s)"
    )
    names = "; ".join(sorted(NEMESES))  # Some have a comma in them.
    parser.add_argument(
        "--nemesis",
        action="append",
        choices=sorted(NEMESES),
        metavar="NAME",
        help=f"only this one; may be repeated: {names}",
    )
    parser.add_argument("--strikes", type=int, default=3, help="of a phase (default %(default)s)")
    parser.add_argument(
        "--calm", type=float, default=4.0, help="at most so many seconds between two (default %(default)s)"
    )
    parser.add_argument("--messages", type=float, default=usual.messages_per_s, help="a second (default %(default)s)")
    parser.add_argument("--events", type=float, default=usual.events_per_s, help="a second (default %(default)s)")
    parser.add_argument("--stops", type=float, default=usual.stops_per_s, help="a second (default %(default)s)")
    parser.add_argument("--burst", type=int, default=usual.burst, help="messages, and events, at once (default 1)")
    parser.add_argument("--feed-count", type=int, default=usual.feed_count, help="events a run (default %(default)s)")
    parser.add_argument("--expression", default=usual.expression, help="of the landings (default %(default)r)")
    parser.add_argument("--folder", type=Path, default=None, help="for all that is written (default: a temporary one)")
    parser.add_argument("--figures", type=Path, default=None, metavar="FILE", help="write the figures there, as JSON")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
