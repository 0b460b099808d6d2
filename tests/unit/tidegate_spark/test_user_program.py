from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.user_program import REASON_BYTES_MAX, cut


@given(text=st.text(max_size=200), repeats=st.integers(min_value=1, max_value=50))
def test_given_any_text_then_the_cut_is_its_longest_prefix_within_the_limit(text: str, repeats: int) -> None:
    """Whole characters only: what is lost at the end is less than one of at most four bytes."""
    whole = text * repeats
    kept = cut(whole)
    assert whole.startswith(kept)
    assert len(kept.encode()) <= REASON_BYTES_MAX
    assert kept == whole or len(kept.encode()) > REASON_BYTES_MAX - 4
