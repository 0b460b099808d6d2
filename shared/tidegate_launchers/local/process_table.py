"""Facts from the operating system about processes: which live, since when, and which belong to a run.

Used by the local launcher and by its supervisor; standard library only, so that the import is fast. On Linux it reads
`/proc`; elsewhere (macOS) it calls `ps`, which shows neither session nor environment, so only the process group is
watched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_PS = ("ps", "-axo", "pid=,pgid=,stat=,lstart=")


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One living process. Zombies do not count: they run nothing.

    Attributes:
        started: Opaque start time, compared for equality only: with the pid it identifies a process within one boot.
    """

    pid: int
    group: int
    session: int | None
    started: str


def boot_id() -> str:
    """Returns an id that changes with each boot of this host."""
    if (PROC / "sys").is_dir():
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    answer = subprocess.run(("sysctl", "-n", "kern.boottime"), capture_output=True, text=True, check=True)
    return " ".join(answer.stdout.split())


def facts_of(pid: int) -> ProcessFacts | None:
    """Returns the facts of a living process; None if no process has this pid."""
    if (PROC / "self").exists():
        return _from_proc(pid)
    return next((facts for facts in _from_ps("-p", str(pid)) if facts.pid == pid), None)


def is_alive(pid: int, started: str) -> bool:
    """Returns whether this process is alive; a later process with the same pid does not count."""
    facts = facts_of(pid)
    return facts is not None and facts.started == started


def members(leader: int, started: str, marker: bytes, among: Collection[int] | None = None) -> list[ProcessFacts]:
    """Returns all living processes of a run, also those that left its session.

    A process belongs to the run if it carries `marker` in its initial environment, for example a daemon with its
    own session. It also belongs if it carries no marker and is in the leader's process group or session.

    Args:
        leader: Pid of the program, which leads its own session and group.
        started: Start time of the leader. If its pid belongs to another process now, the group and session with that
            number belong to that process.
        marker: `NAME=value` of an environment variable that only this attempt's processes carry. A process with
            another value belongs to another attempt, even if the group number matches after a container's restart.
        among: Pids to check; None checks all. Each process costs some 0.1 ms, and a host has hundreds.
    """
    if among is not None:
        found = [facts for pid in {leader, *among} if (facts := facts_of(pid)) is not None]
    else:
        found = list(_from_proc_all()) if (PROC / "self").exists() else list(_from_ps())
    reused = any(facts.pid == leader and facts.started != started for facts in found)
    name = marker.partition(b"=")[0]

    def belongs(facts: ProcessFacts) -> bool:
        carried = _carried(facts.pid, name)
        if carried is not None:
            return carried == marker
        return not reused and leader in (facts.pid, facts.group, facts.session)

    return [facts for facts in found if belongs(facts)]


@dataclass(frozen=True, slots=True)
class Living:
    """All living processes of this host at one moment, for queries about many runs.

    Attributes:
        carried: `NAME=value` of each process that carries the variable.
        started: Start times by pid.
        numbers: Numbers of all groups and sessions with a living process.
    """

    carried: frozenset[bytes]
    started: Mapping[int, str]
    numbers: frozenset[int]

    def has(self, pid: int, started: str) -> bool:
        """Whether this process lives, or another one in its group or session, unless a new process has its pid."""
        known = self.started.get(pid)
        return known == started or (known is None and pid in self.numbers)


def living(name: bytes) -> Living:
    """Returns all living processes; `name` is the environment variable that only processes of runs carry."""
    found = list(_from_proc_all()) if (PROC / "self").exists() else list(_from_ps())
    carried = frozenset(filter(None, (_carried(facts.pid, name) for facts in found)))
    numbers = {number for facts in found for number in (facts.group, facts.session) if number is not None}
    return Living(carried, {facts.pid: facts.started for facts in found}, frozenset(numbers))


def _from_proc_all() -> Iterator[ProcessFacts]:
    for entry in os.scandir(PROC):
        if entry.name.isdecimal():
            facts = _from_proc(int(entry.name))
            if facts is not None:
                yield facts


def _from_proc(pid: int) -> ProcessFacts | None:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # Ended before or during the read.
        return None
    # The command's name is in parentheses and may contain parentheses: the fields follow the last one.
    fields = stat.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    return ProcessFacts(pid=pid, group=int(fields[2]), session=int(fields[3]), started=fields[19])


def _from_ps(*selection: str) -> Iterator[ProcessFacts]:
    command = ("ps", "-o", "pid=,pgid=,stat=,lstart=", *selection) if selection else _PS
    # Exit code 1 means that no process was selected.
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    for line in answer.stdout.splitlines():
        pid, group, state, *started = line.split()
        if not state.startswith("Z"):
            yield ProcessFacts(pid=int(pid), group=int(group), session=None, started=" ".join(started))


def _carried(pid: int, name: bytes) -> bytes | None:
    """Returns `NAME=value` from the environment that the process was started with."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # Belongs to another user, or has ended.
        return None
    return next((variable for variable in variables if variable.startswith(name + b"=")), None)
