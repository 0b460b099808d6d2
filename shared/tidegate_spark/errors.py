"""Errors of this library; each message says what failed for which item, and what to do."""

from __future__ import annotations


class TidegateError(Exception):
    """Base class of all errors of this library."""


class NotInRun(TidegateError):
    """The call needs a run, and this process is not the main process of one."""


class ReportFailed(TidegateError):
    """A report was refused or not delivered in time. It may or may not have arrived; a repeat is harmless."""


class OutputsTooLarge(TidegateError, ValueError):
    """The outputs of the run are larger than the run item can hold."""
