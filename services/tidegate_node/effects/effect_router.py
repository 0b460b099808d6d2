"""The one table from effects to ports. A driver hands every effect to it and holds no rule of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.rows.effects import (
    Cancel,
    Commit,
    FindGaps,
    Inspect,
    Lookup,
    ManyProduced,
    Notice,
    Produce,
    ProduceMany,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Result,
    ReturnCredits,
    SampleLoad,
    StartReading,
    StopReading,
    Submit,
    WakeUp,
    Watch,
    Write,
)
from tidegate_node.effects.bus_effects import BusEffects
from tidegate_node.effects.launch_effects import LaunchEffects
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.load.load_effects import LoadEffects
from tidegate_ports.bus import Membership, Notices
from tidegate_ports.clock import Clock
from tidegate_ports.store import always

Told: TypeAlias = Notice | WakeUp | Cancel | StartReading | StopReading | ReturnCredits
"""Effects that nobody answers, and that are done at once."""
Asked: TypeAlias = (
    Read
    | ReadRange
    | Commit
    | Write
    | ReadEndOffsets
    | FindGaps
    | Produce
    | Submit
    | Lookup
    | Watch
    | Inspect
    | SampleLoad
    | ProveMembership
)
"""Effects with an answer."""
MayAct: TypeAlias = Callable[[], bool]
"""Whether something irreversible may be done now, for the topic partition of whoever asks for it."""


@dataclass(frozen=True, slots=True)
class EffectRouter:
    """What carries effects out; one per process."""

    store: StoreEffects
    bus: BusEffects
    launch: LaunchEffects
    load: LoadEffects
    clock: Clock
    notices: Notices
    membership: Membership
    map_guard: MapLease

    def may_act(self, topic_partition: int, map_version: int) -> bool:
        """Whether what cannot be taken back may be done for it: the guard proves membership, what the client holds that it is ours, and the
        map under which it is held that its shards are.

        The membership's thread gives a topic partition away when its drain is cut, however late the loop hears of that; the guard
        holds on for those that stay.
        """
        return (
            self.membership.guard_holds()
            and topic_partition in self.membership.owned()
            and self.map_guard.holds(map_version, self.clock.monotonic_ms())
        )

    def tell(self, effect: Told) -> None:
        match effect:
            case Notice(event, fields):
                self.notices(event, **fields)
            case WakeUp():
                self.bus.poke(effect)
            case Cancel():
                self.launch.cancel(effect)
            case StartReading():
                self.bus.start_reading(effect)
            case StopReading():
                self.bus.stop_reading(effect)
            case ReturnCredits():
                self.bus.taken(effect)
            case _:
                assert_never(effect)

    def produce_many(self, effect: ProduceMany, may_act: MayAct, answer: Callable[[ManyProduced], None]) -> None:
        """Messages leave in the very step that sends them: no task for each group, and none behind what others decide meanwhile."""
        self.bus.produce_many(effect, may_act, answer)

    async def ask(self, effect: Asked, may_act: MayAct) -> Result:
        """Carries it out; what is guarded only while `may_act` says so, asked right before."""
        match effect:
            case Read():
                return await self.store.read(effect)
            case ReadRange():
                return await self.store.read_range(effect)
            case Commit():
                return await self.store.commit(effect)
            case Write():
                return await self.store.write(effect, may_act if effect.guarded else always)
            case ReadEndOffsets():
                return await self.bus.read_end_offsets(effect)
            case FindGaps():
                return await self.bus.find_gaps(effect)
            case Produce():
                return await self.bus.produce(effect, may_act)
            case ProveMembership():
                return await self.bus.prove_membership(effect)
            case Submit():
                return await self.launch.submit(effect, may_act)
            case Lookup():
                return await self.launch.lookup(effect)
            case Watch():
                return await self.launch.watch(effect)
            case Inspect():
                return await self.launch.inspect(effect)
            case SampleLoad():
                return await self.load.sample(effect)
            case _:
                assert_never(effect)
