from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.sandbox import json_size

SHAPES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(SHAPES)
def test_a_size_is_about_the_length_of_the_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    assert json_size(value) <= 4 * len(text) + 2
