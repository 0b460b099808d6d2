"""A schedule that hears nothing, because its rows in the index are gone, hears again."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.engine.decision import Procedure
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.shard.events.subscriptions import heard_leaves, listen_again, missing_rows
from tidegate_core.shard.schedule_state import fires, parsed


@dataclass(frozen=True, slots=True)
class RestoreSubscriptions(Procedure):
    """Looks again, in the lane: no request of the schedule is under way meanwhile. Rows that a former owner writes for a generation that has
    ended are inert, as those of a request are that came to nothing.
    """

    ref: str
    name: str = "relisten"

    @property
    def about(self) -> str:
        return self.ref

    def run(self, lane: ShardWriter) -> Operation[None]:
        namespace, name = self.ref.split("/", 1)
        found = yield from lane.host.read_for_good(Read((keys.schedule_state(lane.shard, namespace, name),)))
        assert isinstance(found, Items)
        for item in found.found.values():
            state = from_item(ScheduleState, item)
            if fires(state):
                yield from self._relisten(lane, state)

    def _relisten(self, lane: ShardWriter, state: ScheduleState) -> Operation[None]:
        key = keys.definition(lane.shard, state.namespace, state.name, state.version)
        found = yield from lane.host.read_for_good(Read((key,)))
        assert isinstance(found, Items)
        for item in found.found.values():
            rows = yield from missing_rows(lane, state, heard_leaves(parsed(from_item(Definition, item).spec)))
            if not rows:
                continue
            yield from listen_again(lane, rows)
            for row in rows:
                lane.host.note("index_row_missing", schedule=self.ref, event_key=row.event_key, leaf=row.leaf)
