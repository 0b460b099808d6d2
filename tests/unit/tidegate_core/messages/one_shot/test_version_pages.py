"""A look-up of a key's versions reads every page of them."""

from __future__ import annotations

from tests.support.builders import MINUTE, SECOND, Doc, a_send
from tests.support.harness.actor_harness import ActorHarness

VERSIONS = 8
"""Their payloads fill more than one page of the store's 1 MB."""


def a_large_send(number: int) -> Doc:
    return a_send(f"m-{number}", key="k", after="20s", payload={"of": f"m-{number}", "filled": "x" * 200_000})


def test_given_a_repeat_of_a_request_whose_version_lies_on_a_further_page_then_it_replaces_no_younger_message() -> None:
    """Found by the simulation (seed 116): the look-up saw one page, and the repeat counted as the key's newest message."""
    bench = ActorHarness()
    bench.run(SECOND)
    for number in range(VERSIONS):
        bench.request(a_large_send(number))
        bench.run(100)
    bench.request(a_large_send(0))
    bench.run(MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == [f"m-{VERSIONS - 1}"]
