"""Words of a question about a call in doubt, and of its three answers: the same wherever a person is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IN_DOUBT: Final = "may have run already"
"""The words about the tool in the title of the question."""

DOUBT_ANSWERS: Final[Mapping[str, str]] = {
    "approve": "Do it",
    "done": "It was done: this is the result",
    "deny": "It must not be done",
}
"""The words of the three answers, in order. None of them is more likely than the others, so none is preselected."""
