"""The list of requirements is in step with the tests: what it lists exists and carries the identifier, and nothing is missing."""

from pathlib import Path

import pytest

from tests.support.repo.requirements_list import (
    PAGE,
    Requirement,
    carriers,
    contract_sentences,
    renewed,
    requirements,
)

RENEW = "run python -m tests.support.repo.requirements_list"
WORDS_MAX = 40
"""Of an entry: a sentence, or two short ones."""


@pytest.fixture(scope="module")
def listed() -> dict[str, Requirement]:
    return requirements(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def carried(root: Path) -> dict[str, list[str]]:
    return carriers(root)


def test_given_a_listed_test_then_it_exists_and_carries_the_identifier(
    listed: dict[str, Requirement], carried: dict[str, list[str]]
) -> None:
    wrong = [
        f"{identifier}: {test}"
        for identifier, entry in listed.items()
        for test in entry.tests
        if test not in carried.get(identifier, [])
    ]
    assert wrong == [], RENEW


def test_given_an_identifier_in_a_test_then_it_is_listed(
    listed: dict[str, Requirement], carried: dict[str, list[str]]
) -> None:
    assert sorted(carried.keys() - listed.keys()) == []
    assert sorted(identifier for identifier, entry in listed.items() if not entry.tests) == [], RENEW


def test_given_an_entry_then_it_says_in_a_few_words_what_is_required(listed: dict[str, Requirement]) -> None:
    assert [name for name, entry in listed.items() if not 4 <= len(entry.sentence.split()) <= WORDS_MAX] == []


def test_given_the_contract_of_a_port_then_the_page_states_it_in_the_same_words(
    root: Path, listed: dict[str, Requirement]
) -> None:
    stated = contract_sentences(root)
    assert stated
    assert [name for name, sentence in stated.items() if listed[name].sentence != sentence] == [], RENEW


def test_given_tests_in_a_tree_then_names_and_docstrings_carry_identifiers_and_code_does_not(tmp_path: Path) -> None:
    file = tmp_path / "tests" / "unit" / "test_a.py"
    table = tmp_path / "tests" / "simulation" / "directed" / "table.py"
    for each in (file, table):
        each.parent.mkdir(parents=True)
    file.write_text(
        '"""Head (row CD-001)."""\n\n\nclass TestIt:\n    def test_given_ts_04_then_it_is(self) -> None:\n'
        '        """US-03: and so on."""\n\n\ndef test_b() -> None:\n    assert "CD-002"  # CD-003\n'
    )
    table.write_text('HOLES: Table = {"H1": ("here/a: b",)}\n')
    assert carriers(tmp_path) == {
        "CD-001": ["tests/unit/test_a.py"],
        "TS-04": ["tests/unit/test_a.py::TestIt::test_given_ts_04_then_it_is"],
        "US-03": ["tests/unit/test_a.py::TestIt::test_given_ts_04_then_it_is"],
        "H1": ["tests/simulation/directed/table.py::HOLES"],
    }


def test_given_a_page_then_renewing_it_keeps_sentences_and_replaces_tests() -> None:
    page = "# Title\n\nHead.\n\n## Group\n\nIntroduction.\n\n### CD-001\n\nA sentence of it.\n\n- `old`\n\n### B1\n\nStale.\n\n## End\n\nTail.\n"
    new = renewed(page, {"CD-001": ["a.py", "a.py::test_b"], "B1": ["c.py"]}, {"B1": "As the port says."})
    assert requirements(new) == {
        "CD-001": Requirement("A sentence of it.", ["a.py", "a.py::test_b"]),
        "B1": Requirement("As the port says.", ["c.py"]),
    }
    assert "Introduction." in new
    assert new.endswith("## End\n\nTail.\n")
    assert renewed(new, {"CD-001": ["a.py", "a.py::test_b"], "B1": ["c.py"]}, {"B1": "As the port says."}) == new
