"""Problems and the errors that carry them."""

from __future__ import annotations

from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.values.problems import MAX_PROBLEMS, InvalidInput, Problem, did_you_mean, nearest


def test_given_problem_then_its_text_has_field_problem_and_hint() -> None:
    problem = Problem("trigger.zone", '"Europe/Berlim" is unknown', "did you mean Europe/Berlin?")

    assert str(problem) == 'trigger.zone: "Europe/Berlim" is unknown; did you mean Europe/Berlin?'
    assert str(InvalidInput([problem, Problem("", "is empty")])) == f"{problem}; is empty"


def test_given_more_problems_than_anybody_reads_then_a_receipt_still_holds_them() -> None:
    error = InvalidInput([Problem(f"f{number}", "is wrong") for number in range(1000)])

    assert len(error.problems) == MAX_PROBLEMS
    Receipt.model_validate(
        {"request_id": "a", "status": "rejected", "errors": error.problems, "at": "2026-01-01T00:00:00Z"}
    )


def test_given_word_then_the_nearest_known_is_named_or_all_while_few() -> None:
    assert nearest("CRONN", ["cron", "every"]) == "cron"
    assert nearest("zzz", ["cron", "every"]) is None
    assert did_you_mean("evry", ["cron", "every"]) == "did you mean every?"
    assert did_you_mean("zzz", ["cron", "every"]) == "one of: cron, every"
    assert did_you_mean("zzz", [str(number) for number in range(100)]) == ""
