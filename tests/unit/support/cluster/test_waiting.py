from __future__ import annotations

import pytest

from tests.support.cluster.until import NotInTime, until


def test_given_the_deadline_passes_then_the_error_names_what_was_waited_for_and_the_last_answer() -> None:
    with pytest.raises(NotInTime, match=r"the moon: not within 0 s \(last answer: \[\]\)"):
        until(list, "the moon", patience_s=0, look_every_s=0)
