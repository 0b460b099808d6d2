"""Worlds whose programs run on hosts of their own."""

from __future__ import annotations

from tests.simulation.runner.world_drawing import swarm_of, trapped

SEEDS = range(50)


def test_given_hosts_of_their_own_then_a_program_waits_for_the_gate_for_longer_than_the_store_and_the_gate_are_away() -> (
    None
):
    """Seed 36002631: programs gave up while a silent store and an unreachable gate were still to come back."""
    for names in (("silence", "copies"), ("copies", "silence"), ("rare_outages", "lost_hosts")):
        for seed in SEEDS:
            swarm = swarm_of(seed)
            for name in names:
                swarm = trapped(swarm, seed, name)
            away = (*swarm.store.brown_outs, *swarm.launcher.gate_downs)
            assert swarm.launcher.gate_wait_ms > sum(end - begin for begin, end in away) + 60_000
