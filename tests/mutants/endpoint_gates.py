"""Gates of the endpoints of a file of servers, and of the groups that its tools are offered to."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["ENDPOINT_GATES"]

_ENDPOINTS, _FILE, _HTTP = "gateway/_file.py", "gateway/_file.py", "adapters/mcp_server/_http.py"
_OF_ENDPOINTS, _OF_OPTIONS = ("tests/gateway/test_endpoints.py",), ("tests/gateway/test_options.py",)

ENDPOINT_GATES: tuple[Gate, ...] = (
    Gate(
        "endpoints: a file gives no tools until one is named",
        _ENDPOINTS,
        "if endpoint is None and not endpoints:",
        "if endpoint is None:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: the options of one in place of the section's",
        _ENDPOINTS,
        '{**section, **options, "http": http}',
        '{**section, "http": http}',
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: the servers of one",
        _FILE,
        'if (wanted := document.get("of_endpoint")) is not None:',
        "if (wanted := None) is not None:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: an option that none has",
        _ENDPOINTS,
        "if option not in (*_OF_SECTION, *_Endpoint.model_fields):",
        "if False:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: the public URL of each",
        _ENDPOINTS,
        'if endpoints and "public_url" in (section.get("http") or {}):',
        "if False:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: a path of its own for each",
        _HTTP,
        "if not paths or len({*paths}) < len(paths):",
        "if not paths:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: suspended calls and tasks of one",
        _HTTP,
        "if call is None or not call.key.startswith(self._prefix):",
        "if call is None:",
        _OF_ENDPOINTS,
    ),
    Gate(
        "endpoints: a key of its own for each suspended call",
        _HTTP,
        "options = plain if len(endpoints) == 1 else",
        "options = plain if endpoints else",
        _OF_ENDPOINTS,
    ),
    Gate(
        "groups of a file: one of those that are named",
        _FILE,
        "not wanted.isdisjoint(claimed_groups(access.claims, claim))",
        "bool(claimed_groups(access.claims, claim))",
        _OF_OPTIONS,
    ),
    Gate(
        "groups of a file: a claim that is no list",
        "serving/_principals.py",
        "isinstance(found, list | tuple) else [found]",
        "not isinstance(found, str) else [found]",
        _OF_OPTIONS,
    ),
    Gate(
        "groups of a file: the claim that is named",
        _FILE,
        "claimed_groups(access.claims, claim))",
        'claimed_groups(access.claims, "groups"))',
        _OF_OPTIONS,
    ),
    Gate(
        "groups of a file: those that a budget counts",
        "gateway/_options.py",
        "if any(fnmatchcase(group, pattern) for pattern in counted)",
        "if counted",
        ("tests/gateway/test_groups.py",),
    ),
    Gate(
        "groups of a file: the tools that are named",
        _FILE,
        "tools.filtered(_for_groups(groups, options.group_claim), [pattern])",
        "tools",
        _OF_OPTIONS,
    ),
)
