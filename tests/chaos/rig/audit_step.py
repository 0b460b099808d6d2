"""`tidegate audit` over a campaign's time: what the store itself says, beside what the evidence does."""

from __future__ import annotations

import time

from tests.chaos.rig.proxied_cluster import ChaosCluster
from tests.support.checkers.faults import Fault
from tests.support.cluster.message_load import instant

CLEAN, NOT_YET = 0, 75
TRIES_MAX = 12
"""A shard comes to an instant when it next looks, some seconds later."""
ASK_AGAIN_S = 5.0
READS_PER_S = "2000"
"""Nobody else needs the store by then; at its own pace it takes five minutes for the schedules of two hours."""
AUDIT_S_MAX = 1_800.0
SHOWN_CHARACTERS = 4_000


def audited(cluster: ChaosCluster, begin: int, end: int) -> list[Fault]:
    """Returns a fault where the audit of [begin, end), ms since the epoch, finds anything, or cannot tell."""
    status, said = None, ""
    for _ in range(TRIES_MAX):
        window = ("--from", instant(begin), "--to", instant(end))
        status, said = cluster.command("audit", *window, "--sink", "--reads-per-s", READS_PER_S, patience_s=AUDIT_S_MAX)
        if status != NOT_YET:
            break
        time.sleep(ASK_AGAIN_S)
    return [] if status == CLEAN else [Fault("audit", f"exit {status}: {said[-SHOWN_CHARACTERS:]}")]
