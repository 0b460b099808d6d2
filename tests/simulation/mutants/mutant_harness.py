"""Goes once no topic imports it: its content is in `tests/simulation/stories/stage.py`."""

from tests.simulation.stories.stage import (
    FOR_EVER,
    NEVER_STARTS,
    Stage,
    a_commit,
    comes_through_the_inbox,
    keys_of,
    limit_of,
    starts,
    takes,
    writing,
)

__all__ = [
    "FOR_EVER",
    "NEVER_STARTS",
    "Stage",
    "a_commit",
    "comes_through_the_inbox",
    "keys_of",
    "limit_of",
    "starts",
    "takes",
    "writing",
]
