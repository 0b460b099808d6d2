"""Routes each effect to the port that carries it out. Called by the drivers; it holds no rule."""

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
"""Effects without an answer, which are done at once."""
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
"""Whether an irreversible effect is allowed now for the requesting topic partition."""


@dataclass(frozen=True, slots=True)
class EffectRouter:
    """Ports that carry effects out; one per process."""

    store: StoreEffects
    bus: BusEffects
    launch: LaunchEffects
    load: LoadEffects
    clock: Clock
    notices: Notices
    membership: Membership
    map_guard: MapLease

    def may_act(self, topic_partition: int, map_version: int) -> bool:
        """Whether an irreversible effect is allowed for this topic partition.

        Membership must be proven, the client must own the topic partition, and the assignment's map must be in force.

        The membership thread gives a topic partition away when its drain is cut, however late the loop learns of it.
        Proven membership still holds for the others.
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
        """Sends messages in the step that requests them, without a task for each group and without a wait for other
        work.
        """
        self.bus.produce_many(effect, may_act, answer)

    async def ask(self, effect: Asked, may_act: MayAct) -> Result:
        """Carries out an effect and returns its result. A guarded effect needs `may_act`, asked right before."""
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
