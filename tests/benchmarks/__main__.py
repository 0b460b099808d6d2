"""`python -m tests.benchmarks`: measure workloads, or compare two revisions; a JSON line for each, and a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.rig.result_table import table
from tests.benchmarks.rig.results import Result, result_from
from tests.benchmarks.rig.revision_comparison import NoSuchRevision, compared, worktree_of
from tests.benchmarks.rig.runner import measured_alone
from tests.benchmarks.rig.workload import FOLDER, Case, Size, Workload, workloads_in

Chosen = Sequence[tuple[Workload, Case]]


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 once all was measured."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.show is not None:
        return _say(*table([result_from(line) for line in options.show.read_text("utf-8").splitlines()]))
    try:
        found = workloads_in(options.folder)
        chosen = _chosen(found, options.workloads or list(found), options.size, options.case)
    except (FileNotFoundError, KeyError) as wrong:
        parser.error(str(wrong.args[0]))
    if options.list:
        return _say(*(f"{each.name:4} {each.title}" for each in found.values()))
    if options.base is None:
        results = [_one(workload, case, options.size, Path.cwd(), options.out) for workload, case in chosen]
        return _say("", *table(results))
    try:
        return _compare(chosen, options)
    except NoSuchRevision as wrong:
        parser.error(str(wrong))


def _compare(chosen: Chosen, options: argparse.Namespace) -> int:
    results: dict[str, list[Result]] = {"base": [], "here": []}
    with worktree_of(Path.cwd(), options.base) as base:
        for _ in range(options.rounds):
            # A B A B: what else the machine does drifts, and meets both alike.
            for workload, case in chosen:
                for name, tree in (("base", base), ("here", Path.cwd())):
                    results[name].append(_one(workload, case, options.size, tree, options.out))
    return _say("", *table([*results["base"], *results["here"]]), "", *compared(results["base"], results["here"]))


def _one(workload: Workload, case: Case, size: Size, tree: Path, out: Path | None) -> Result:
    result = measured_alone(workload, case, size, tree)
    _say(result.line())
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a", encoding="utf-8") as file:
            file.write(result.line() + "\n")
    return result


def _chosen(found: Mapping[str, Workload], names: Sequence[str], size: Size, label: str | None) -> Chosen:
    unknown = [name for name in names if name.upper() not in found]
    if unknown:
        raise KeyError(f"no workload {', '.join(unknown)}; there are {', '.join(found)}")
    workloads = [found[name.upper()] for name in names]
    pairs = [(workload, case) for workload in workloads for case in workload.cases(size)]
    chosen = [(workload, case) for workload, case in pairs if label is None or case.label == label]
    if not chosen:
        labels = dict.fromkeys(case.label for _, case in pairs)
        raise KeyError(f"no case {label!r}; there are {', '.join(map(repr, labels))}")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="W1", help="which ones (default: all)")
    parser.add_argument("--size", choices=("full", "smoke"), default="full", help="smoke: seconds, and no true figures")
    parser.add_argument("--case", help="only the case of this label")
    parser.add_argument(
        "--base", metavar="REV", help="measure this revision in turn with the tree as it is, and compare"
    )
    parser.add_argument("--rounds", type=int, default=2, help="of a comparison (default %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append the JSON lines there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: print the table of JSON lines")
    parser.add_argument("--list", action="store_true", help="measure nothing: name the workloads")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the workloads (default %(default)s)")
    return parser


def _say(*lines: str) -> int:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
