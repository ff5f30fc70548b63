# Call ids that are used, negative, no integers, or of streams that nobody opened.
# breach: dead, hang, baseexc
import json, os, struct


def send(frame):
    data = json.dumps(frame).encode()
    os.write(3, struct.pack(">I", len(data)) + data)


which = @NUMBER@ % 6
odd = [1, -5, 1.5, True, "1", None][which]
for kind in ("call", "call", "next", "drop"):
    send({"t": kind, "id": odd, "name": "add", "args": [1, 2], "kwargs": {}, "wait": True})
send({"t": "wait", "for": [float("1e308"), -1, "x", [], None, True][which]})
while True:
    os.read(3, 65536)
