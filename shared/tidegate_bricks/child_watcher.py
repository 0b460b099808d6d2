"""Runs one command and ensures that it never outlives the process that started it.

`guarded_process.py` starts this file as a separate program, by its path and without site-packages, so it uses the
standard library only. Simpler ways fail: Linux's parent-death signal fires when the
*thread* that forked ends, and a handler at exit does not run after `kill -9`. This process has one thread and a pipe:

- Standard input carries orders of one byte (`T` terminate, `K` kill, `S` stop, `C` continue). Its end means that the
  parent is gone, and the command is killed at once, so that the next start can take over its files and ports.
- Standard output carries the command's process id, once.
- The command writes to this process's standard error, and its exit status becomes this process's own.

A Java command inherits all other descriptors too: the lock on its data folder lives exactly as long as it does.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

ORDERS = {b"T": signal.SIGTERM, b"K": signal.SIGKILL, b"S": signal.SIGSTOP, b"C": signal.SIGCONT}
#: Seconds between checks of the parent, in addition to the pipe, whose other end a fork of the parent may hold open.
PARENT_CHECK_INTERVAL_S = 1.0
PR_SET_PDEATHSIG = 1
STDIN, STDOUT, STDERR = 0, 1, 2


def main(command: list[str]) -> int:
    parent = os.getppid()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=STDERR,
        stderr=STDERR,
        close_fds=False,
        preexec_fn=dying_with(os.getpid()),  # noqa: PLW1509 - this process has one thread, so nothing can deadlock
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: child.send_signal(signal.SIGTERM))
    os.write(STDOUT, b"%d\n" % child.pid)
    os.close(STDOUT)
    return watch(child, parent, wakeup_on_child_exit())


def watch(child: subprocess.Popen[bytes], parent: int, wakeup: int) -> int:
    """Executes orders until the command has ended; returns its status as a shell would."""
    while (status := child.poll()) is None:
        readable, _, _ = select.select([STDIN, wakeup], [], [], PARENT_CHECK_INTERVAL_S)
        if wakeup in readable:
            os.read(wakeup, 64)
            continue
        order = os.read(STDIN, 1) if STDIN in readable else None
        if order == b"" or os.getppid() != parent:
            child.kill()
            status = child.wait()
            break
        if order is not None:
            child.send_signal(ORDERS[order])
    return 128 - status if status < 0 else status


def wakeup_on_child_exit() -> int:
    """Returns a descriptor that becomes readable when the command ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    # Without a Python handler the signal would be ignored, and the descriptor would never become readable.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reading


def dying_with(guard: int) -> Callable[[], None]:
    """Returns a function for the child to call before the command replaces it: on Linux it requests a kill when the
    guard dies.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def ask_for_death_signal() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:  # the guard died before the request
                os._exit(1)

    return ask_for_death_signal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
