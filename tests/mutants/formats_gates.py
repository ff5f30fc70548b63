"""What makes a reply malformed, of which a part could not be read: nothing of it runs."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["FORMATS_GATES"]

_TESTS = ("tests/rounds/test_misread.py", "tests/rounds/test_spoilt.py")
_NO_NAME = 'misread.append("one of its calls named no tool and was left out")'
_OWN_TOOLS = ("tests/formats/test_message_blocks.py",)
_SWITCHED = ("tests/formats/test_switching.py",)
_BY_TYPE = ("tests/rounds/test_well_formed.py",)

FORMATS_GATES: tuple[Gate, ...] = (
    Gate("replies with what could not be read", "formats/_wire.py", "if not misread:", "if True:", _TESTS),
    Gate(
        "what is no object",
        "formats/_json_reading.py",
        'misread.append(f"`{key}` of it is not a JSON object")',
        "pass",
        _TESTS,
    ),
    Gate(
        "what is no list", "formats/_json_reading.py", 'misread.append(f"`{key}` of it is not a list")', "pass", _TESTS
    ),
    Gate(
        "what is no object in a list",
        "formats/_json_reading.py",
        'misread.append(f"`{key}` of it has an entry that is not a JSON object")',
        "pass",
        _TESTS,
    ),
    Gate(
        "what is no number",
        "formats/_json_reading.py",
        'misread.append(f"`{key}` of it is not a whole number")',
        "pass",
        _TESTS,
    ),
    Gate(
        "fields of another kind",
        "formats/_json_reading.py",
        'misread.append(f"`{key}` of it is not a {_KINDS[kind]}")',
        "pass",
        _TESTS,
    ),
    Gate(
        "fields of another kind in what goes back",
        "formats/_json_reading.py",
        "if value is not None and (kind is None or isinstance(value, kind)):",
        "if value is not None:",
        _TESTS,
    ),
    Gate("calls of Anthropic that name no tool", "formats/_anthropic.py", _NO_NAME, "pass", _TESTS),
    Gate("calls of Bedrock that name no tool", "formats/_bedrock.py", _NO_NAME, "pass", _TESTS),
    Gate("calls of Gemini that name no tool", "formats/_gemini.py", _NO_NAME, "pass", _TESTS),
    Gate(
        "calls of chat messages that name no tool",
        "formats/_chat.py",
        'misread.append(f"{len(sent) - len(calls)} of its calls named no tool and were left out")',
        "pass",
        _TESTS,
    ),
    Gate(
        "calls of Responses that name no tool",
        "formats/_openai_responses.py",
        "(misread if is_named or not item else problems)",
        "(problems)",
        _TESTS,
    ),
    Gate(
        "calls of Anthropic's own without an id",
        "formats/_anthropic.py",
        """misread.append("a call of the provider's own came without an id and was left out")""",
        "pass",
        _TESTS,
    ),
    Gate(
        "blocks of Anthropic without a type",
        "formats/_anthropic.py",
        "misread += [UNTYPED] if len(blocks) < len(sent) else []",
        "pass",
        _TESTS,
    ),
    Gate(
        "streamed blocks of Anthropic without a type",
        "formats/_anthropic_stream.py",
        "stream.misread.append(UNTYPED)",
        "pass",
        _TESTS,
    ),
    Gate(
        "events of an unknown type for a call",
        "formats/_anthropic_stream.py",
        'stream.misread.append(f"an event of the type `{kind}` came for a call")',
        "pass",
        _TESTS,
    ),
    Gate(
        "pieces of Anthropic's of no open call",
        "formats/_anthropic_stream.py",
        'misread += ["a piece of a call came where no call is open"] if piece else []',
        "pass",
        _TESTS,
    ),
    Gate(
        "pieces of a call of an unknown type",
        "formats/_anthropic_stream.py",
        'misread += [f"a piece of a call has the type `{kind}`"] if delta else []',
        "pass",
        _TESTS,
    ),
    Gate(
        "pieces of Bedrock's of no open call",
        "formats/_bedrock.py",
        'if ("toolUse" in block) is not (kind == "toolUse"):',
        'if "toolUse" not in block and kind == "toolUse":',
        _TESTS,
    ),
    Gate(
        "pieces of Responses' of no open call",
        "formats/_openai_responses.py",
        'stream.misread += ["a piece of a call came where no call is open"] if any(arguments) else []',
        "pass",
        _TESTS,
    ),
    Gate(
        "pieces of Gemini's that say nothing known",
        "formats/_gemini_stream.py",
        "misread.append(f\"a piece of a call has nothing that is known: `{next(iter(call.keys() - {'id'}))}`\")",
        "pass",
        _TESTS,
    ),
    Gate(
        "Gemini's pieces by the id of their call",
        "formats/_gemini_stream.py",
        "key: object = next(iter(self._open)) if not id and len(self._open) == 1 else id",
        "key: object = next(iter(self._open), id)",
        _TESTS,
    ),
    Gate(
        "results beside words while a program waits for them",
        "formats/_message_blocks.py",
        "if ends or (id in programs and _answers_and_says(blocks))]",
        "if ends]",
        _OWN_TOOLS,
    ),
    Gate(
        "how a reply ended that is read by its type",
        "formats/_format.py",
        'if kind not in FINISHED or not items or (not calls if kind == "tool_calls" else stop in self.text_stops):',
        "if not items:",
        _BY_TYPE,
    ),
    Gate(
        "ids of a reply that is read by its type",
        "formats/_format.py",
        "        if not are_unique(calls, taken, self.takes_id):\n",
        "        if False:\n",
        _BY_TYPE,
    ),
    Gate(
        "arguments of a reply that is read by its type",
        "formats/_format.py",
        "        if not are_objects(texts) or (values and canonical(values) is not values):\n",
        "        if False:\n",
        _BY_TYPE,
    ),
    Gate(
        "what else is in a reply that is read by its type",
        "formats/_reply_types.py",
        '_CLOSED = ConfigDict(extra="forbid", strict=True)',
        '_CLOSED = ConfigDict(extra="ignore", strict=True)',
        _BY_TYPE,
    ),
    Gate(
        "parts that another format does not take",
        "formats/_switching.py",
        "if reader.refused and not drop:",
        "if False:",
        _SWITCHED,
    ),
    Gate(
        "transcripts out of order that are to be in another format",
        "formats/_switching.py",
        "if problems := source.check(shapes):",
        "if problems := []:",
        _SWITCHED,
    ),
    Gate(
        "calls of kinds that another format does not have",
        "formats/_switching.py",
        "if spot.call.kind in _FUNCTIONS:",
        "if True:",
        _SWITCHED,
    ),
    Gate(
        "a turn that goes on after results, in another format",
        "formats/_switching.py",
        "goes_on = goes_on and not has_results",
        "pass",
        _SWITCHED,
    ),
    Gate(
        "an open round of a session that another model is to go on with",
        "rounds/_session_state.py",
        "        self._require_settled()\n        self._require_loaded()\n",
        "        self._require_loaded()\n",
        ("tests/rounds/test_switched_sessions.py",),
    ),
)
