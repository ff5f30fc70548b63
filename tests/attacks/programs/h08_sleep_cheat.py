# Says that it waits, and computes instead of reading what it waits for, again and again.
# breach: hang, late, cpu
import json, os, struct

body = json.dumps({"t": "wait", "for": 0.0001}).encode()
while True:
    os.write(3, struct.pack(">I", len(body)) + body)
    sum(range(3_000_000))
    os.read(3, 1 << 16)
