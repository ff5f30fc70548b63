"""Problems of an answer: arguments, fields or a result that do not fit what the request says of them."""

from __future__ import annotations

from toolcrib._json_writer import RepeatedKeyError
from toolcrib.approvals._answers import answered_fields
from toolcrib.calls import ApprovalRequest, Grant, lenient
from toolcrib.jsonschema.checker import misfits
from toolcrib.schema import hidden_paths


def answer_problems(request: ApprovalRequest, answer: Grant) -> list[str]:
    """Return the problems of the arguments, fields or result in an answer, a sentence each."""
    fields = answer.override_args
    try:
        shown = request.arguments  # an argument that is left as it was shown keeps its real value
        changed = {name: value for name, value in (fields or {}).items() if name not in shown or shown[name] != value}
        if hidden := hidden_paths(changed):
            return [f"{path}: type the real value in place of the hidden one" for path in hidden]
    except RecursionError:
        return ["The arguments are too deeply nested."]
    if answer.done is not None:
        return [str(problem) for problem in misfits(request.returns or {}, answer.done.value)]
    if request.asked_by is not None:
        try:
            fields = answered_fields(request, answer)
        except RepeatedKeyError as error:
            return [str(error)]
    return [] if fields is None else [str(problem) for problem in misfits(request.parameters or {}, lenient(fields))]
