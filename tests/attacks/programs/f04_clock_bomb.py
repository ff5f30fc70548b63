# Claims to have read the clock a hundred thousand times a frame, with numbers of any size.
# breach: mem, dead, hang, baseexc
import json, os, struct


def send(frame):
    data = json.dumps(frame).encode()
    os.write(3, struct.pack(">I", len(data)) + data)


for number in range(100_000):
    send({"t": "wait", "for": 0, "clock": [10**300, -1, number] * 30_000})
