"""A request's body is the request, whatever users wrote into the texts in it."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tidegate_dynamo.item_client import body_of

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
REQUESTS = st.dictionaries(
    ANY_TEXT,
    st.recursive(ANY_TEXT | st.booleans() | st.none() | st.integers(), st.lists, max_leaves=5),
)


@given(REQUESTS)
@example({"half a surrogate pair": "\ud800", "and its letters": "\\ud800"})
@example({"Item": {"pk": {"S": '\u2028\x00\x7f"\\/'}}})
def test_given_any_text_then_the_body_says_the_same(request: dict[str, Any]) -> None:
    assert json.loads(body_of(request)) == request
