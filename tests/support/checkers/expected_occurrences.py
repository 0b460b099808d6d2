"""Which occurrences there should be, from a cron expression and its bounds."""

from __future__ import annotations

SECOND_MS = 1_000


def every_nth_second(expression: str, start: int, end: int) -> list[int]:
    """Returns the instants in [start, end) that a `unix6` expression of the form `a-b/n * * * * *` or `*/n ...` names.

    Looks at every single second: slow and beyond doubt. The zone is UTC.

    Args:
        expression: Only the field of the seconds may say something.
        start: ms since the epoch, inclusive.
        end: ms since the epoch, exclusive.

    Raises:
        ValueError: The expression says more than that.
    """
    seconds, *rest = expression.split()
    if rest != ["*"] * 5:
        raise ValueError(f"{expression!r}: this judge reads nothing but seconds")
    span, _, step = seconds.partition("/")
    low, high = (0, 59) if span == "*" else tuple(int(part) for part in span.split("-"))
    wanted = frozenset(range(low, high + 1, int(step or "1")))
    first = -(-start // SECOND_MS) * SECOND_MS
    return [instant for instant in range(first, end, SECOND_MS) if instant // SECOND_MS % 60 in wanted]
