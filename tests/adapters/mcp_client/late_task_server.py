"""A server over standard streams that replies to a call with a task when it likes, and says what it is asked."""

import json
import sys
import time

version, seconds = sys.argv[1], float(sys.argv[2])
tool = {"name": "pay", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
caching = {"ttlMs": 0, "cacheScope": "private"}
tasks = {"requests": {"tools": {"call": {}}}}
task = {"taskId": "t1", "status": "working", "createdAt": "2026-11-28T00:00:00Z", "ttl": None, "ttlMs": None}
task["lastUpdatedAt"] = task["createdAt"]
results = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": tasks},
        "serverInfo": {"name": "late", "version": "1"},
    },
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        **caching,
    },
    "tools/list": {"tools": [tool], **caching},
}

for line in sys.stdin:
    asked = json.loads(line)
    method, number, params = asked["method"], asked.get("id"), asked.get("params") or {}
    print(f"{method} {params.get('taskId', '')}".strip(), file=sys.stderr, flush=True)
    if number is None:
        continue
    result = results.get(method, {})
    if method == "tools/call":
        time.sleep(seconds)
        result = {"task": task} if version == "older" else {**task, "resultType": "task"}
    elif version == "newer":
        result = {"resultType": "complete", **result}
    reply = {"result": result}
    if method == "server/discover" and version == "older":
        reply = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": number, **reply}), flush=True)
