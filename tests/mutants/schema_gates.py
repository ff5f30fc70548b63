"""What is shown of a schema to every provider, and what is checked of it."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["SCHEMA_GATES"]

_PORTABLE, _PATTERNS, _BOUNDED = (f"jsonschema/{name}.py" for name in ("_portable", "_patterns", "_bounded"))
_OF_PORTABLE = ("tests/jsonschema/test_portable.py",)
_OF_PATTERNS = ("tests/jsonschema/test_patterns.py",)
_OF_UNEVALUATED = ("tests/jsonschema/test_unevaluated.py",)

SCHEMA_GATES: tuple[Gate, ...] = (
    Gate(
        "secret default of a model in a signature",
        "schema/_spec.py",
        "(is_field(parameter.default) or parameter.annotation not in _NEVER_SECRET)",
        "parameter.annotation not in _NEVER_SECRET",
        ("tests/schema/test_signature.py",),
    ),
    Gate(
        "secret default of a function in a signature",
        "schema/_spec.py",
        "if not any(map(_may_have_secret_default, self._shown)):",
        "if True:",
        ("tests/schema/test_signature.py",),
    ),
    Gate(
        "names of groups in a pattern for a provider",
        _PORTABLE,
        '"(?:" if text == "(?:" else "("',
        "text",
        _OF_PORTABLE,
    ),
    Gate(
        "repeats in repeats that RE2 refuses",
        _PORTABLE,
        "        if self.states > _MOST_STATES or self.repeats > _MOST_REPEATS:\n",
        "        if self.states > _MOST_STATES:\n",
        _OF_PORTABLE,
    ),
    Gate(
        "escapes that engines read in different ways",
        _PORTABLE,
        "    if other.isascii() and other.isalnum():\n        raise _NotPortableError\n",
        "",
        _OF_PORTABLE,
    ),
    Gate("letters of all languages in a pattern", _PATTERNS, "_CLASSES.get(here, here)", "here", _OF_PATTERNS),
    Gate("bars in a group behind a look-ahead", _PATTERNS, "not _chooses(rest)", '"|" not in rest', _OF_PATTERNS),
    Gate(
        "names that nothing evaluates",
        _BOUNDED,
        '    "unevaluatedProperties": _check_unevaluated_names,\n',
        '    "unevaluatedProperties": lambda *_: None,\n',
        _OF_UNEVALUATED,
    ),
    Gate(
        "items that nothing evaluates",
        _BOUNDED,
        '    "unevaluatedItems": _check_unevaluated_items,\n',
        '    "unevaluatedItems": lambda *_: None,\n',
        _OF_UNEVALUATED,
    ),
)
