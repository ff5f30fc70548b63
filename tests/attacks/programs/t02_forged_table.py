# Leaves a table that is none: its texts end where there are no bytes, for a reader in C++ to find out.
# breach: dead, hang, mem, late, neighbour
import json, os, struct

columns = [["a", "string", False, 4], ["b", "large_string", True, 1 << 30]]
data = struct.pack("<iiiixxxx4sxxxx", 0, 1 << 30, -(1 << 30), 1 << 30, b"abcd") + b"\xff" * 64
table = {"rows": 3, "columns": columns, "pandas": True, "blob": 0}
body = json.dumps({"t": "done", "v": {"$table": 0}, "tables": [table], "blobs": [len(data)]}).encode()
os.write(3, struct.pack(">I", len(body)) + body + data)
while True:
    pass
