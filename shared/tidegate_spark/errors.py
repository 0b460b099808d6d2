"""What can go wrong for a program that talks to tidegate; each message says what, to which item, and what to do."""

from __future__ import annotations


class TidegateError(Exception):
    """Base of all errors of this library."""


class NotInRun(TidegateError):
    """The call needs a run, and this process is not the main process of one."""


class ReportFailed(TidegateError):
    """A report was refused, or could not be delivered in time. It may or may not have arrived; a repeat is harmless."""


class OutputsTooLarge(TidegateError, ValueError):
    """The outputs of the run exceed what the run item holds."""
