# Leaves a table of bits, each of which becomes an object in a DataFrame.
# breach: dead, hang, mem, late, neighbour
import json, os, struct

data = b"\x55" * 4_000_000
table = {"rows": 15_900_000, "columns": [["a", "bool", True, 0]], "pandas": True, "blob": 0}
body = json.dumps({"t": "done", "v": {"$table": 0}, "tables": [table], "blobs": [len(data)]}).encode()
rest = memoryview(struct.pack(">I", len(body)) + body + data)
while rest:
    rest = rest[os.write(3, rest) :]
while True:
    pass
