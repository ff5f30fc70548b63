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

_CUT_OFF = "this call was begun and is not known to have ended, so it may have been done"
_FAILED = 'this call was begun and failed: "{error}". It may have been done in part'
_LOST = "this call was executed, and its result was not stored"
_ANSWERS = f"The answers are: {'; '.join(DOUBT_ANSWERS.values())}"
_CHANGED = (
    "The tool has changed since and no longer takes the arguments ({error}). Give its result if it was done, "
    "other arguments to have it done now, or deny it"
)


def doubt_reason(error: object, mismatch: object, *, ended: bool) -> str:
    """Return why a person is asked about a call in doubt, and what they may answer.

    Args:
        error: The error with which its earlier execution failed; None where none is known.
        mismatch: Why the tool does not take its arguments any more; None where it does.
        ended: Whether the call is known to have ended, and only its result is not.
    """
    doubt = _LOST if ended else _CUT_OFF if error is None else _FAILED.format(error=error)
    return f"{doubt}. {_ANSWERS if mismatch is None else _CHANGED.format(error=mismatch)}"
