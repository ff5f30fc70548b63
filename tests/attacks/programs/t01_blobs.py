# Announces as many bytes beside its last frame as it may, sends a few of them, and goes on computing.
# breach: dead, hang, mem, late, neighbour
import json, os, struct

body = json.dumps({"t": "done", "v": 1, "blobs": [600_000] * 50}).encode()
os.write(3, struct.pack(">I", len(body)) + body + b"x" * 1_000)
while True:
    pass
