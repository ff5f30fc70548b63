# Says that it is done and goes on: a second end, calls after the end, an answer for the next program.
# breach: unoffered, persist, dead, hang
import json, os, struct


def send(frame):
    data = json.dumps(frame).encode()
    os.write(3, struct.pack(">I", len(data)) + data)


send({"t": "done", "v": "first"})
send({"t": "call", "id": 1, "name": "secret_tool", "args": [], "kwargs": {}, "wait": True})
send({"t": "done", "v": "BACKDOOR"})
send({"t": "out", "s": "SEEN", "err": False})
while True:
    pass
