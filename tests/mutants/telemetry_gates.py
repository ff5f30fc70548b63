"""What keeps private values out of spans, spans where they belong, and events from those who did not ask."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["TELEMETRY_GATES"]

_SINK = "telemetry/_sink.py"
_NAMES = "telemetry/_attributes.py"
_RUNS = "record/_activity_trace.py"

_OF_CALLS = ("tests/telemetry/test_calls.py",)
_OF_RUNS = ("tests/telemetry/test_runs.py",)
_OF_EVENTS = ("tests/record/test_runs.py",)
_OF_TURNS = ("tests/turns/test_told.py",)
_OF_PROGRAMS = ("tests/code/test_activities.py",)

TELEMETRY_GATES: tuple[Gate, ...] = (
    # --- what may be on a span
    Gate(
        "arguments on a span",
        _SINK,
        "            if self._arguments:\n                span.set_attribute(named.ARGUMENTS",
        "            if True:\n                span.set_attribute(named.ARGUMENTS",
        _OF_CALLS,
    ),
    Gate(
        "results on a span",
        _SINK,
        'if self._results and "value" in outcome:',
        'if "value" in outcome:',
        _OF_CALLS,
    ),
    Gate(
        "a program's text on a span",
        _SINK,
        'if self._arguments and "source" in event.data:',
        'if "source" in event.data:',
        _OF_RUNS,
    ),
    Gate(
        "words of an error on a span",
        _SINK,
        "named.text_of(message) if self._results and message else failure",
        "named.text_of(message) if message else failure",
        _OF_CALLS,
    ),
    Gate(
        "a hook's reason on a span",
        _NAMES,
        '("reason",) if reasons and data.get("reason") else ()',
        '("reason",)',
        _OF_CALLS,
    ),
    Gate("length of an attribute", _NAMES, "default=str), _MOST)", "default=str), None)", _OF_CALLS),
    Gate(
        "names that a model made up",
        _NAMES,
        'return OTHER if event.data.get("outcome", {}).get("code") in _UNKNOWN else event.tool',
        "return event.tool",
        _OF_CALLS,
    ),
    Gate(
        "secrets of a turn that is told",
        "turns/_binding.py",
        "tool.spec.canonical(_unread(arguments)).shown",
        "dict(arguments)",
        _OF_TURNS,
    ),
    # --- what is inside of what
    Gate(
        "span around the tool",
        "pipeline/_execute.py",
        "    with call.activate():\n        for wrapper in",
        "    if True:\n        for wrapper in",
        ("tests/telemetry/test_calls.py",),
    ),
    Gate(
        "span around each step",
        _RUNS,
        "        with self._within():\n            return await anext",
        "        if True:\n            return await anext",
        _OF_RUNS,
    ),
    Gate("context left as it was", _SINK, "token.var.reset(token)", "token.var.get(token)", _OF_CALLS),
    Gate("context of another task", _SINK, "suppress(ValueError)", "suppress(TypeError)", _OF_CALLS),
    Gate(
        "link to where a call waited",
        _SINK,
        "self._waiting.put(key, opened.span.get_span_context())",
        "pass",
        _OF_CALLS,
    ),
    Gate(
        "one program wherever it goes on",
        "code/_activity.py",
        'named = before.get("program") or run.channel.program_id',
        "named = run.channel.program_id",
        _OF_PROGRAMS,
    ),
    # --- who is told
    Gate(
        "run events for those who asked",
        _RUNS,
        "    if not several or not activity_sinks(several):\n        return None\n",
        "",
        _OF_EVENTS,
    ),
    Gate(
        "a sink that fails at a run",
        _RUNS,
        "            sink.emit_activity(event)\n        except BaseException as error:",
        "            sink.emit_activity(event)\n        except TypeError as error:",
        _OF_EVENTS,
    ),
    Gate("a run is closed once", _RUNS, "        if not self._closed:\n", "        if True:\n", _OF_EVENTS),
    Gate("each sink once", "record/_sinks.py", "if not any(sink is known for known in first)", "if True", _OF_EVENTS),
)
