"""Runs the demo on a started stack: applies the schedules, follows the runs, and compares the results."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from tidegate_cli.demo.accounting import Account, Artefacts, LedgerEntry, account
from tidegate_cli.demo.demo_plan import DAILY, DATASET_OF, LANDING, MINIMUM_PERIOD_MS, DemoPlan, plan_from
from tidegate_cli.demo.final_message import TOPIC, announce, make_topic
from tidegate_cli.demo.result_tables import account_table, report_table, runs_table, verdict
from tidegate_cli.demo.run_watcher import Watcher
from tidegate_cli.demo.schedule_files import schedule_documents
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.options import StackOptions
from tidegate_cli.dev.stack import Stack
from tidegate_cli.dev.stack_events import Ready
from tidegate_client.client import Client
from tidegate_client.views import OccurrenceView
from tidegate_pipelines.delay_report import Report, differences, read_report, write_report
from tidegate_pipelines.independent_report import independent_report
from tidegate_pipelines.input_data import Source, unpacked

DAY_PREFIX = "day="


def artefacts_in(lake: Path) -> Artefacts:
    """Returns the number of complete Parquet files of each dataset and day."""
    parts = lake.glob(f"[!.]*/{DAY_PREFIX}*/[!.]*.parquet")
    return Counter((part.parent.parent.name, part.parent.name.removeprefix(DAY_PREFIX)) for part in parts)


NODES = 2
LEAD = timedelta(seconds=5)
"""Time between the apply of the landing schedules and their first instant; an apply takes well below a second."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Output folders of the demo. The stack's data are in another folder and are removed."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def report(self) -> Path:
        return self.root / "report.parquet"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def keep_logs(self, data_dir: Path) -> None:
        """Copies the logs of nodes, API and runs before the stack's data are removed."""
        for name in ("log", "runs"):
            # If the stack failed to start, the folder may be missing.
            if (data_dir / name).is_dir():
                shutil.copytree(data_dir / name, self.logs / name, dirs_exist_ok=True, ignore_dangling_symlinks=True)

    def clear(self) -> None:
        """Removes the output of an earlier demo, and nothing more."""
        for folder in (self.source, self.lake, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
        self.report.unlink(missing_ok=True)


def demo_options() -> StackOptions:
    settings = {"TIDEGATE_MINIMUM_PERIOD_MS": str(MINIMUM_PERIOD_MS)}
    return StackOptions(data_dir=None, nodes=NODES, announced=False, settings=settings)


@dataclass(slots=True)
class Story:
    """One demo on a started stack."""

    stack: Stack
    console: Console
    folders: Folders
    day_count: int

    def tell(self, ready: Ready) -> bool:
        """Runs the pipeline and shows the results. Returns whether there are no differences.

        Raises:
            StackFailed: A step did not happen in time.
            tidegate_client.errors.TidegateError: The API refused a request.
        """
        begun = time.monotonic()
        self.folders.clear()
        source = unpacked(self.folders.source)
        make_topic(ready.kafka)
        with Client(ready.api_url) as client:
            plan = self._apply(client, source)
            watcher = Watcher(self.stack, client, plan, self.console)
            watcher.until_all_ended()
            artefacts = artefacts_in(self.folders.lake)
            # A missing day shows twice: in the account, and as a difference to the independent report.
            published = [day for day in plan.days if (DATASET_OF["delays"], day.isoformat()) in artefacts]
            report = read_report(self.folders.lake, published)
            write_report(report, self.folders.report)
            self._announce(client, ready, plan, report)
            # Read again some seconds after the last expected end, so that an extra fire would be visible.
            ledger, artefacts = watcher.ledger(), artefacts_in(self.folders.lake)
        result = account(plan, map(ledger_entry, ledger), artefacts)
        against = differences(independent_report(source.flights, source.weather, plan.days), report)
        self._show(plan, ledger, report, result)
        for problem in (*result.problems, *against):
            self.console.print(f"! {problem}", style="bold red", soft_wrap=True)
        self.console.print(verdict(result.problems, against, time.monotonic() - begun), style="bold")
        return not result.problems and not against

    def _apply(self, client: Client, source: Source) -> DemoPlan:
        # Schedules that wait for data are applied first; otherwise they could miss the first day's data.
        unplanned = plan_from(datetime.now(UTC) + LEAD, self.day_count)
        for document in schedule_documents(DAILY, unplanned, source, self.folders.lake):
            client.apply_schedule(document, actor="demo")
        plan = plan_from(datetime.now(UTC) + LEAD, self.day_count)
        for document in schedule_documents(LANDING, plan, source, self.folders.lake):
            client.apply_schedule(document, actor="demo")
        if datetime.now(UTC) >= plan.start:
            raise StackFailed("applying the schedules took so long that their first instant has passed", "try again")
        names = ", ".join((*LANDING, *DAILY))
        self.console.print(
            f"Applied {names}: {plan.expression} from {plan.start:%H:%M:%S} to {plan.end:%H:%M:%S} UTC, a day of 2013 "
            f"for each instant, {plan.occurrences} runs of spark-submit.",
            soft_wrap=True,
        )
        return plan

    def _announce(self, client: Client, ready: Ready, plan: DemoPlan, report: Report) -> None:
        payload = {"report": str(self.folders.report), "days": len(plan.days), "rows": len(report)}
        delivered = announce(client, ready.kafka, payload)
        self.console.print(
            f"One-shot message on {TOPIC}: {delivered.payload}, due {delivered.due:%H:%M:%S}, "
            f"{delivered.lateness_ms} ms late.",
            soft_wrap=True,
        )
        if delivered.payload != payload:
            raise StackFailed(f"the announcement says {delivered.payload} instead of {payload}")
        if delivered.lateness_ms < 0:
            raise StackFailed(f"the announcement came {-delivered.lateness_ms} ms early")

    def _show(self, plan: DemoPlan, ledger: Sequence[OccurrenceView], report: Report, result: Account) -> None:
        self.console.print()
        self.console.print(runs_table(ledger, plan))
        self.console.print(report_table(report))
        self.console.print(account_table(result))
        self.console.print(f"Parquet: {self.folders.lake} (datasets by day), {self.folders.report}", soft_wrap=True)


def ledger_entry(view: OccurrenceView) -> LedgerEntry:
    """Converts an occurrence of the API to a ledger entry of the account."""
    return LedgerEntry(view.schedule, view.nominal, view.correlation, view.disposition, view.reason, view.state)
