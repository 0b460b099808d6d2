"""Drives one partition actor synchronously on the store in memory, with immediate or scripted answers. For tests of the core.

Nothing takes time on a bench: effects are carried out in the order in which they were asked, at the same instant, unless a
test scripts an answer. So a run without a fault is the yardstick for the same run with one.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tidegate_core.decisions.event_index import EventIndex
from tidegate_core.decisions.inputs import Begin, Drain, Input, LogRecord, Poked, RecordsArrived, Tick
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.effects import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Committed,
    Drained,
    Effect,
    EndOffsets,
    Gone,
    Inspect,
    Inspected,
    Items,
    LaunchOrder,
    LookedUp,
    Lookup,
    Membership,
    Notice,
    Poke,
    Produce,
    Produced,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Refused,
    Result,
    StartReading,
    StopReading,
    Submit,
    Submitted,
    Taken,
    Unavailable,
    Watch,
    Write,
    Written,
)
from tidegate_core.model.identity import shard_of_run
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import LedgerRow, ScheduleState
from tidegate_core.store.values import Item, Transaction
from tidegate_core.transactions.gate import finish_run, start_run
from tidegate_core.transactions.settlement import ReadWitness, SendAgain, Settlement
from tidegate_testkit.builders import EVENTS, NOW, RECEIPTS, REQUESTS, RUNS, Doc, a_holding
from tidegate_testkit.desk import rows_of
from tidegate_testkit.memory_store import MemoryStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
OUR_TOPICS = frozenset({RECEIPTS, RUNS, "tidegate.requests.dlq", "tidegate.events.dlq"})
EFFECTS_AT_ONE_INSTANT_MAX = 50_000
"""An actor that asks for more without time passing goes round in circles."""
OUTSIDE = (Commit, Write, Produce, Submit, Cancel)
"""Effects that change something outside of the actor: a crash between two others cannot be told from one at these."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that was produced."""

    at: int
    topic: str
    key: bytes | None
    value: bytes
    headers: dict[str, str]

    @property
    def document(self) -> Doc:
        document: Doc = json.loads(self.value)
        return document


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a program does.

    Attributes:
        starts_after: Milliseconds from submission to the gate; None: it never comes to it.
        runs_for: From the gate to its report; None: for ever.
        reports: Whether its wrapper reports the end.
    """

    starts_after: int | None = 50
    runs_for: int | None = 300
    outcome: str = "succeeded"
    reports: bool = True
    outputs: Doc | None = None
    gone: Gone = field(default_factory=lambda: Gone(0))


@dataclass(slots=True)
class _Process:
    order: LaunchOrder
    behaviour: Behaviour
    driver: str
    watchers: list[int] = field(default_factory=list)
    gone: Gone | None = None


Match: TypeAlias = Callable[[Effect], bool]


@dataclass(slots=True)
class _Rule:
    """A scripted answer: `before` and `after` say what happens around carrying the effect out."""

    match: Match
    times: int
    act: Callable[[Ask], None]


class Bench:
    """One partition actor with a world around it: store, two logs, a broker that takes everything, programs.

    Attributes:
        asked: Everything that was asked, in order.
        started: (run id, attempt) of every pass of the gate, in order.
        crash_after: The actor is killed when this many effects on the outside are carried out; a successor begins at once.
        late_writes_after: Milliseconds after a crash in which the writes arrive that the dead actor had asked for.
    """

    def __init__(self, *, behaviour: Behaviour | None = None, **holding: Any) -> None:
        self.store = MemoryStore()
        self.now = NOW
        self.asked: list[Effect] = []
        self.sent: list[Sent] = []
        self.started: list[LaunchOrder] = []
        self.crash_after: int | None = None
        self.late_writes_after: int | None = None
        self.effects_outside = 0
        self.lives = 0
        self.behaves: Callable[[LaunchOrder], Behaviour] = lambda order: behaviour or Behaviour()
        self.is_member: bool | None = True
        self._holding = holding
        self._logs: dict[tuple[str, int], list[LogRecord]] = {}
        self._reading: set[tuple[str, int]] = set()
        self._processes: dict[tuple[str, int], _Process] = {}
        self._soon: deque[Ask | Input] = deque()
        self._timeline: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._rules: list[_Rule] = []
        self._held: list[Callable[[], None]] = []
        self.new_actor()

    # -- life ---------------------------------------------------------------------------------------------------------

    def new_actor(self, owner: str | None = None) -> None:
        """Forgets the present actor, if any, and makes another one on the same world; `begin` or `run` sets it going."""
        self.lives += 1
        self.holding = a_holding(owner or f"node-{self.lives}", **self._holding)
        self.actor = PartitionActor(self.holding, EventIndex())
        self._soon.clear()
        self._reading.clear()
        self._held.clear()
        for process in self._processes.values():
            process.watchers.clear()
        self._soon.append(Begin())

    def crash(self) -> None:
        """Kills the actor where it stands, and sets a successor going."""
        self.crash_after = None
        handed_out = [each for each in self._soon if isinstance(each, Ask)]
        self.new_actor()
        if self.late_writes_after is not None:
            self._later(self.late_writes_after, lambda: self._arrive_late(handed_out))

    def _arrive_late(self, handed_out: list[Ask]) -> None:
        """What a dead actor's driver had sent reaches the store after all; the answers find nobody."""
        for ask in handed_out:
            if isinstance(ask.effect, Commit | Write):
                self._result(ask)

    def drain(self) -> None:
        self.give(Drain())

    # -- inputs -------------------------------------------------------------------------------------------------------

    def give(self, *inputs: Input) -> None:
        """Hands inputs to the actor, and lets everything happen that follows at this instant."""
        self._soon.extend(inputs)
        self.settle()

    def request(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(REQUESTS, topic_partition, document)

    def event(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(EVENTS, topic_partition, document)

    def append(self, topic: str, topic_partition: int, *documents: Doc | bytes) -> None:
        """Appends records; they arrive as one batch if the topic partition is being read."""
        log = self.log(topic, topic_partition)
        first = len(log)
        for document in documents:
            value = document if isinstance(document, bytes) else json.dumps(document).encode()
            log.append(LogRecord(len(log), self.now, None, value))
        if (topic, topic_partition) in self._reading:
            self._soon.append(RecordsArrived(topic, topic_partition, tuple(log[first:])))
        self.settle()

    def log(self, topic: str, topic_partition: int) -> list[LogRecord]:
        return self._logs.setdefault((topic, topic_partition), [])

    # -- time ---------------------------------------------------------------------------------------------------------

    def run(self, milliseconds: int = 0) -> None:
        """Lets time pass, alarm by alarm."""
        end = self.now + milliseconds
        self.settle()
        while True:
            wake = self.actor.next_wake()
            upcoming = [each for each in (wake, self._timeline[0][0] if self._timeline else None) if each is not None]
            if not upcoming or min(upcoming) > end:
                break
            self.now = max(self.now, min(upcoming))
            if self._timeline and self._timeline[0][0] <= self.now:
                heapq.heappop(self._timeline)[2]()
            else:
                self._soon.append(Tick())
            self.settle()
        self.now = end
        # The clock that programs and logs see moved; so does the actor's.
        self.give(Tick())

    def settle(self) -> None:
        """Carries out what was asked until nothing is left to do at this instant."""
        for _ in range(EFFECTS_AT_ONE_INSTANT_MAX):
            if not self._soon:
                return
            following = self._soon.popleft()
            if isinstance(following, Ask):
                self._carry_out(following)
            else:
                self._soon.extend(self.actor.step(self.now, following))
        raise AssertionError("the actor goes round in circles")

    def _later(self, milliseconds: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._timeline, (self.now + milliseconds, next(self._order), action))

    # -- scripted answers -----------------------------------------------------------------------------------------------

    def answer_with(self, match: Match, result: Result, times: int = 1) -> None:
        """Answers so, and does nothing."""
        self._rules.append(_Rule(match, times, lambda ask: self._answer(ask, result)))

    def lose_answer_of(self, match: Match, times: int = 1) -> None:
        """Carries it out, and says that nobody knows."""

        def act(ask: Ask) -> None:
            self._result(ask)
            self._answer(ask, Unavailable("scripted"))

        self._rules.append(_Rule(match, times, act))

    def lose(self, match: Match, times: int = 1) -> None:
        """Does nothing, and says that nobody knows."""
        self.answer_with(match, Unavailable("scripted"), times)

    def hold_back(self, match: Match, times: int = 1, *, answer_only: bool = False) -> None:
        """Carries it out at `release`; `answer_only`: carries it out now, and answers at `release`."""

        def act(ask: Ask) -> None:
            if answer_only:
                result = self._result(ask)
                self._held.append(lambda: self._answer(ask, result))
            else:
                self._held.append(lambda: self._answer(ask, self._result(ask)))

        self._rules.append(_Rule(match, times, act))

    def release(self) -> None:
        held, self._held = self._held, []
        for each in held:
            each()
        self.settle()

    @property
    def holds_something(self) -> bool:
        return bool(self._held)

    # -- effects ------------------------------------------------------------------------------------------------------

    def _carry_out(self, ask: Ask) -> None:
        self.asked.append(ask.effect)
        life = self.lives
        rule = next((rule for rule in self._rules if rule.times and rule.match(ask.effect)), None)
        if rule is not None:
            rule.times -= 1
            rule.act(ask)
        else:
            self._answer(ask, self._result(ask))
        if isinstance(ask.effect, OUTSIDE) and life == self.lives:
            self.effects_outside += 1
            if self.effects_outside == self.crash_after:
                self.crash()

    def _answer(self, ask: Ask, result: Result | None) -> None:
        if result is not None and ask.token:
            self._soon.append(Answer(ask.token, result))

    def _result(self, ask: Ask) -> Result | None:
        match ask.effect:
            case Read(wanted):
                return Items(self.store.get(list(wanted)))
            case ReadRange(wanted):
                return self.store.query(wanted)
            case Commit(transaction):
                return self.transact(transaction)
            case Write(batch):
                self.store.write(batch.actions)
                return Written()
            case ReadEndOffsets(topic):
                return self._end_offsets(topic)
            case Produce():
                return self._produced(ask.effect)
            case Submit() | Lookup() | Watch() | Cancel() | Inspect():
                return self._launcher(ask)
            case ProveMembership():
                return Membership(self.is_member)
            case Poke(shard, run):
                self._soon.append(Poked(shard, run))
            case StartReading(topic, topic_partition, offset):
                self._reading.add((topic, topic_partition))
                records = tuple(self.log(topic, topic_partition)[offset or 0 :])
                if records:
                    self._soon.append(RecordsArrived(topic, topic_partition, records))
            case StopReading(topic, topic_partition):
                self._reading.discard((topic, topic_partition))
            case Taken() | Notice() | Drained():
                pass
        return None

    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable:
        """Sends a transaction as a driver would, on a store that answers everything."""
        _, step = Settlement(transaction).answered(self.store.transact(transaction))
        assert not isinstance(step, SendAgain | ReadWitness)
        return step

    def _end_offsets(self, topic: str) -> EndOffsets:
        facts = self.holding.requests if topic == REQUESTS else self.holding.events
        each = range(facts.topic_partitions)
        return EndOffsets({f"{facts.id}/{number}": len(self.log(topic, number)) for number in each})

    def _produced(self, produce: Produce) -> Produced:
        headers = {name: value.decode() for name, value in produce.headers}
        self.sent.append(Sent(self.now, produce.topic, produce.key, produce.value, headers))
        return Produced()

    # -- programs -----------------------------------------------------------------------------------------------------

    def _launcher(self, ask: Ask) -> Result | None:
        match ask.effect:
            case Submit(order):
                self._submit(order)
                return Submitted(f"external-{order.run_id}-{order.attempt}", "host-1", "boot-1")
            case Lookup(run, attempt):
                process = self._processes.get((run, attempt))
                if process is None:
                    return LookedUp("absent")
                return LookedUp("found", f"external-{run}-{attempt}", "host-1", "boot-1")
            case Watch(run, attempt):
                process = self._processes[(run, attempt)]
                if process.gone is None:
                    process.watchers.append(ask.token)
                return process.gone
            case Cancel(run, attempt):
                self._end(self._processes.get((run, attempt)), Gone(143))
            case Inspect(_, file):
                return Inspected("cannot be read" if "missing" in file else None)
            case _:
                pass
        return None

    def _submit(self, order: LaunchOrder) -> None:
        name = (order.run_id, order.attempt)
        if name in self._processes:
            return  # Adopted under its name.
        behaviour = self.behaves(order)
        process = _Process(order, behaviour, f"driver of {order.run_id} {order.attempt}")
        self._processes[name] = process
        if behaviour.starts_after is not None:
            self._later(behaviour.starts_after, lambda: self._start(process))

    def _start(self, process: _Process) -> None:
        order, behaviour = process.order, process.behaviour
        if process.gone is not None:
            return
        token = f"start {process.driver}"
        verdict = self.transact(start_run(order.run_id, order.attempt, process.driver, self.now, token))
        if not isinstance(verdict, Committed):
            self._end(process, Gone(0))
            return
        self.started.append(order)
        self._poke(order)
        if behaviour.runs_for is not None:
            self._later(behaviour.runs_for, lambda: self._finish(process))

    def _finish(self, process: _Process) -> None:
        order, behaviour = process.order, process.behaviour
        if process.gone is not None:
            return
        if behaviour.reports:
            outputs = None if behaviour.outputs is None else json.dumps(behaviour.outputs)
            told = (behaviour.outcome, behaviour.gone.exit_code, None, None, outputs, self.now, f"end {process.driver}")
            self.transact(finish_run(order.run_id, order.attempt, process.driver, *told))
            self._poke(order)
        self._end(process, behaviour.gone)

    def _end(self, process: _Process | None, gone: Gone) -> None:
        if process is None or process.gone is not None:
            return
        process.gone = gone
        self._soon.extend(Answer(token, gone) for token in process.watchers)

    def vanish(self, run: str, attempt: int = 1, gone: Gone | None = None) -> None:
        """Ends a process without any report."""
        self._end(self._processes[(run, attempt)], gone or Gone(137))
        self.settle()

    def _poke(self, order: LaunchOrder) -> None:
        self._soon.append(Poked(shard_of_run(order.run_id), order.run_id))

    # -- what came of it ------------------------------------------------------------------------------------------------

    def all_asked(self, kind: type[R]) -> list[R]:
        return [effect for effect in self.asked if isinstance(effect, kind)]

    def commits(self, name: str) -> list[Transaction]:
        return [each.transaction for each in self.all_asked(Commit) if each.transaction.name == name]

    def notices(self, event: str) -> list[Notice]:
        return [each for each in self.all_asked(Notice) if each.event == event]

    def on(self, topic: str) -> list[Sent]:
        return [each for each in self.sent if each.topic == topic]

    def receipts(self) -> dict[str, Doc]:
        """Returns the receipts by request id; of several the last."""
        return {(each.key or b"").decode(): each.document for each in self.on(RECEIPTS)}

    def status_of(self, request_id: str) -> str | None:
        receipt = self.receipts().get(request_id)
        return None if receipt is None else str(receipt["status"])

    def rows(self, prefix: str) -> list[Item]:
        """Returns the items whose sort key begins so, of all shards and both tables."""
        return rows_of(self.store, prefix)

    def state_of(self, name: str = "nightly") -> ScheduleState | None:
        found = [from_item(ScheduleState, row) for row in self.rows(f"S#flights/{name}")]
        return found[0] if found else None

    def ledger(self) -> list[tuple[str, str, int, str | None]]:
        """Returns (disposition/reason, schedule, nominal, state) of all that has ended."""
        found = [from_item(LedgerRow, row) for row in self.rows("L#")]
        return sorted(
            (f"{row.disposition}/{row.reason}".rstrip("/"), row.name, row.nominal, row.state) for row in found
        )

    def delivered(self) -> list[bytes]:
        """Returns the payloads of delivered messages, in order."""
        return [each.value for each in self.sent if each.topic not in OUR_TOPICS]

    def picture(self) -> dict[str, object]:
        """Returns all that a user or a successor could tell apart, without what a crash may change: epochs, revisions,
        repeats of what is at least once.
        """
        return {
            "main": [_plain(row) for row in self.rows("") if str(row["sk"]).split("#")[0] in _COMPARED],
            "ended": [_plain(row) for row in rows_of(self.store, "") if str(row["sk"]).startswith(("L#", "R#"))],
            "receipts": {_sorted_receipt(each.value) for each in self.on(RECEIPTS)},
            "runs": {each.value for each in self.on(RUNS)},
            "delivered": {(each.topic, each.headers["tidegate-id"], each.value) for each in self._messages()},
            "dead": {(each.topic, each.value) for each in self.sent if each.topic.endswith(".dlq")},
            # Sorted: which of several open runs a successor submits first is nobody's promise.
            "started": sorted((order.run_id, order.attempt, order.args, str(order.context)) for order in self.started),
        }

    def summary(self) -> dict[str, object]:
        """Returns what came of it without any instant, for faults that take time (retries after a pause)."""
        ledger = [from_item(LedgerRow, row) for row in self.rows("L#")]
        receipts = [each.document for each in self.on(RECEIPTS)]
        open_rows = [row for row in self.rows("") if str(row["sk"]).split("#")[0] in {"J", "R", "E", "I", "Z"}]
        holders = [(str(row["pk"]), str(row["sk"]), str(row.get("holders", ""))) for row in self.rows("LIM")]
        return {
            "ledger": sorted((row.name, row.job_id, row.disposition, row.reason, str(row.state)) for row in ledger),
            "open": sorted((str(row["pk"]), str(row["sk"]), str(row.get("state"))) for row in open_rows),
            "permits": [each for each in sorted(holders) if each[2] not in {"", "frozenset()"}],
            "receipts": sorted({(each["request_id"], each["status"], str(each["version"])) for each in receipts}),
            "delivered": sorted({(each.topic, each.headers["tidegate-id"], each.value) for each in self._messages()}),
            "dead": sorted({(each.topic, each.value) for each in self.sent if each.topic.endswith(".dlq")}),
            "started": sorted((order.run_id, order.attempt, order.args, _manifest(order)) for order in self.started),
        }

    def _messages(self) -> list[Sent]:
        return [each for each in self.sent if each.topic not in OUR_TOPICS]


def _manifest(order: LaunchOrder) -> str:
    rows = order.context["manifest"]
    assert isinstance(rows, list)
    return ",".join(sorted(str(row["partition"]) for row in rows if isinstance(row, dict)))


_COMPARED = frozenset({"S", "DEF", "J", "E", "EC", "I", "LIM", "LIMIT", "RQ", "T", "Z", "G", "data", "run"})
"""Kinds of items that a picture shows, by the first part of their sort key; messages are compared by their delivery."""


_OF_THE_NODE = frozenset({"rev", "w", "node", "host", "boot_id", "external_id"})


def _plain(item: Item) -> tuple[tuple[str, str], ...]:
    told = _sorted_receipt(item["body"]) if str(item["sk"]).startswith("RQ#") else ""
    fields = {name: str(value) for name, value in item.items() if name not in _OF_THE_NODE}
    return tuple(sorted({**fields, "body": told or fields.get("body", "")}.items()))


def _sorted_receipt(body: object) -> str:
    """What a receipt lists is a set: the order in which pending things ended says nothing."""
    assert isinstance(body, str | bytes)
    receipt: Doc = json.loads(body)
    if receipt["discarded"]:
        receipt["discarded"]["jobs"].sort()
    return json.dumps({**receipt, "running": sorted(receipt["running"])}, sort_keys=True)
