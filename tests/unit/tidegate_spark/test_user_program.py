from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.user_program import REASON_BYTES_MAX, cut


@given(text=st.text(max_size=200), repeats=st.integers(min_value=1, max_value=50))
def test_given_any_text_then_the_cut_is_all_of_it_or_its_two_ends_within_the_limit(text: str, repeats: int) -> None:
    """Whole characters only."""
    whole = text * repeats
    kept = cut(whole)
    assert len(kept.encode()) <= REASON_BYTES_MAX
    if len(whole.encode()) <= REASON_BYTES_MAX:
        assert kept == whole


def test_given_a_workers_error_then_the_reason_ends_with_the_cause() -> None:
    """The first 1 KiB was kept: where the job was aborted, and frames; the user's own error stands at the end."""
    frames = "\n".join(f"\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:{number})" for number in range(100))
    trace = "\n".join(f'  File "/opt/spark/python/worker.py", line {number}, in process' for number in range(60))
    error = f"SparkException: Job aborted\n{frames}\nCaused by: PythonException: Traceback:\n{trace}\nValueError: day 31 of June\n{frames}\n\t... 1 more"
    kept = cut(error)
    assert kept.startswith("SparkException: Job aborted\nCaused by: ")
    assert kept.endswith("ValueError: day 31 of June")
    assert len(kept.encode()) <= REASON_BYTES_MAX
