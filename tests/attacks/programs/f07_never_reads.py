# Asks for megabytes of replies and reads none of them: whoever writes without looking waits for ever.
# breach: hang, mem, dead
import json, os, struct


def send(frame):
    data = json.dumps(frame).encode()
    os.write(3, struct.pack(">I", len(data)) + data)


for number in range(1, 2000):
    send({"t": "call", "id": number, "name": "big", "args": [], "kwargs": {}, "wait": False})
while True:
    pass
