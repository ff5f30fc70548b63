# Speaks the wire's protocol by hand: calls what is not offered, `__import__` and dotted names.
# breach: unoffered
import json, os, struct, time


def send(frame):
    data = json.dumps(frame).encode()
    os.write(3, struct.pack(">I", len(data)) + data)


for number, name in enumerate(("secret_tool", "__import__", "add.__globals__", "os.system"), 900):
    send({"t": "call", "id": number, "name": name, "args": [], "kwargs": {}, "wait": False})
time.sleep(0.2)
