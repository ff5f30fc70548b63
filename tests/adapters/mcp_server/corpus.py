"""Messages that no client should send: as text for a line or for the body of a request."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from mcp_types.version import LATEST_MODERN_VERSION

__all__ = ["HOSTILE", "hostile_messages"]

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _request(method: Any, params: Any, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


HOSTILE: tuple[bytes, ...] = (
    b"",
    b"\x00\xff\xfe\x80",
    b"{",
    b"[]",
    b"null",
    b"[" * 10_000,
    b'{"a":' * 5_000,
    b'"\\ud800"',
    b'{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    b'{"jsonrpc": "2.0", "id": 7, "error": {"code": "x", "message": 5}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}',
    b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 99}}',
    _request("tools/call", {"name": "echo", "arguments": {"text": "x"}}, 10**400),
    _request("tools/call", {"name": "echo", "arguments": {"text": "x"}}, "i" * 20_000),
    _request("tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": _ENVELOPE}, "\ud83d"),
    _request("tools/call", {"name": "none", "arguments": {}, "_meta": _ENVELOPE}, "\udc00 \ud83d"),
    _request("tools/call", {"name": "echo", "_meta": {**_ENVELOPE, "progressToken": "\ud83d"}}, "\ud83d"),
    _request(
        "initialize", {"protocolVersion": "\ud83d", "capabilities": {}, "clientInfo": {"name": "\ud83d"}}, "\ud83d"
    ),
    _request("\ud83d", {"_meta": _ENVELOPE}, "\ud83d"),
    _request("tools/call", {"name": "echo", "arguments": [1]}),
    _request("tools/call", {"name": 5}),
    _request("tools/call", [1, 2]),
    _request("tools/call", {"name": "echo", "requestState": "v1.x", "inputResponses": {"a": 1}}),
    _request("tools/call", {"name": "echo", "_meta": {"progressToken": [1]}}),
    _request("tools/call", {"name": "echo", "_meta": {**_ENVELOPE, "toolcrib/request": "ask_\u0000"}}),
    _request("tools/call", {"name": "echo", "_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}}),
    _request("tools/list", {"cursor": {"a": 1}}),
    _request("initialize", {"protocolVersion": 5, "capabilities": "all", "clientInfo": None}),
    _request("initialize", {}),
    _request("subscriptions/listen", {"notifications": 1, "_meta": _ENVELOPE}),
    _request("logging/setLevel", {"level": "shout"}),
    _request("\u0000", {}),
    _request("__init__", {}),
    _request(None, None),
    _request("resources/read", {"uri": "file:///etc/passwd"}),
)

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
_METHODS = st.sampled_from(
    ["initialize", "ping", "tools/call", "tools/list", "server/discover", "notifications/cancelled"]
) | st.text(max_size=20)
_NAMES = st.sampled_from(["name", "arguments", "_meta", "requestState", "inputResponses", "cursor", "protocolVersion"])
_SHAPED = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | _VALUES, "method": _METHODS | _VALUES},
    optional={"id": _VALUES, "params": st.dictionaries(_NAMES, _VALUES, max_size=4) | _VALUES},
)


def hostile_messages() -> st.SearchStrategy[bytes]:
    """Return a strategy of messages: bytes, JSON of any shape, and JSON-RPC with anything in it."""
    as_json = (_VALUES | _SHAPED).map(lambda value: json.dumps(value).encode())
    return st.sampled_from(HOSTILE) | st.binary(max_size=60) | as_json
