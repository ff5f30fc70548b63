"""The way a call came: what a replay of the record has to know besides its arguments, and is the host's alone."""

from __future__ import annotations

from typing import Any

from toolcrib.calls import equal_json, lenient
from toolcrib.errors import SchemaError
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["came_with"]


def came_with(call: LiveCall, *, fits: bool = False) -> dict[str, Any]:
    """Return it as JSON shapes; of most calls there is nothing.

    Args:
        call: A call that is received now.
        fits: Whether its arguments were read, and do not hold a secret only by chance.
    """
    received, run = call.received, call.run
    found: dict[str, Any] = _given(call) if fits else {}
    said = {"origin": "" if received.origin == "model" else received.origin, "caller": received.caller}
    found |= {name: value for name, value in (*said.items(), ("fault", received.fault)) if value}
    if run.available is not None or call.name in run.revealed:
        found["offered"] = call.name in run.revealed or (run.available is not None and call.name in run.available)
    if run.access is not None and call.plan.entry.scopes:
        found["scopes"] = sorted(run.access.scopes)
    if run.asks_for(call.name):
        found["asks"] = True
    if run.principal is not None:
        found["principal"] = run.principal
    if words := run.new_words():
        found["heard"] = list(words)
    return found | run.describe(call) if run.feature_parts else found


def _given(call: LiveCall) -> dict[str, Any]:
    """Return the arguments without defaults and conversions, where these made others of them and none is a secret."""
    form = call.args.canonical
    if form.without_form:
        return {"without_form": True}
    try:
        if call.plan.spec.has_secrets or form.shown is not form.values:
            return {}
    except SchemaError:  # a host may pass what has no schema
        return {}
    if call.args.original is not None:  # by the host, before any gate saw it
        return {"arguments": form.values}
    try:
        given = call.args.without_defaults
    except ValueError:  # text that was read though it is no JSON as it stands
        given = call.raw_arguments
    if equal_json(given, form.values):
        return {}
    given = lenient(given)
    return {} if equal_json(given, form.values) else {"arguments": given}
