"""The gate's secret and the tokens that it signs; what nodes make the API accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate_api.routes.gate import speaks_for
from tidegate_node.startup_checks import gate_secret
from tidegate_ports.common.run_tokens import SecretUnusable, read_secrets, run_token


def test_given_a_secret_then_it_is_read_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"x" * 32 + b"\n")
    assert read_secrets(file) == (b"x" * 32,)


def test_given_no_usable_secret_then_the_setting_is_named(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"x" * 31 + b"\n")
    second = tmp_path / "second"
    second.write_bytes(b"x" * 32 + b"\n" + b"y" * 31 + b"\n")
    for file, said in (
        (None, "is not set"),
        (tmp_path / "none", "No such file"),
        (short, "short holds 31 characters"),
        (second, "second line 2 holds 31 characters"),
    ):
        with pytest.raises(SecretUnusable, match=rf"gate\.secret_file \(TIDEGATE_GATE__SECRET_FILE\).*{said}"):
            read_secrets(file)


def test_given_another_secret_run_or_attempt_then_the_token_is_another_and_speaks_for_its_own_alone() -> None:
    kinds = [(secret, run, attempt) for secret in (b"k", b"l") for run in ("a", "b") for attempt in (1, 2)]
    tokens = {kind: run_token(*kind) for kind in kinds}
    assert len(set(tokens.values())) == len(kinds)
    for kind in kinds:
        accepted = [other for other, token in tokens.items() if speaks_for(kind[:1], f"Bearer {token}", *kind[1:])]
        assert accepted == [kind]


def test_given_a_secret_that_is_replaced_then_those_who_hold_the_old_ones_token_speak_until_its_line_is_gone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "secret"
    old, new, foreign = b"o" * 32, b"n" * 32, b"f" * 32
    file.write_bytes(new + b"\r\n" + old + b"\n")
    assert read_secrets(file) == (new, old)
    assert gate_secret(file) == new, "nodes sign with the first"
    for secret, speaks in ((new, True), (old, True), (foreign, False)):
        assert speaks_for(read_secrets(file), f"Bearer {run_token(secret, 'a', 1)}", "a", 1) is speaks
    file.write_bytes(new)
    assert not speaks_for(read_secrets(file), f"Bearer {run_token(old, 'a', 1)}", "a", 1)


def test_given_the_form_of_tokens_then_it_stays_what_running_programs_hold() -> None:
    """A golden value: programs that were started before an update report after it."""
    assert run_token(b"s" * 32, "0007-abc", 2) == "6f069939fe5bc68188dc341398d2fa6b80210a228a29bd590f937349f66d4297"
