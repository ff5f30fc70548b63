# Hands the host artifacts whose names lead out of a folder, more of them than it may, and too large ones.
# breach: write, mem, flood
import os, struct, json, typing

tries = [
    lambda: open("artifacts/../../../../..@CANARY@/pwned", "w").write("x"),
    lambda: open("@CANARY@/pwned", "w").write("x"),
    lambda: os.rename("artifacts", "@CANARY@/pwned"),
    lambda: os.symlink("@CANARY@/pwned", "artifacts/link"),
    lambda: open("artifacts/a", "wb").write(b"x" * (1 << 30)),
    lambda: open("artifacts/a", "wb").truncate(1 << 40),
    lambda: [open(f"artifacts/{number}", "w") for number in range(100_000)],
    lambda: typing.sys.modules["_io"].open("@CANARY@/pwned", "w").write("x"),
    lambda: typing.sys.modules["posix"].open("@CANARY@/pwned", os.O_CREAT | os.O_WRONLY),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, str(error)[:200])
FILES = typing.sys.modules.get("toolcrib_worker._files")
if FILES is not None:
    FILES.FILES._written["../../..@CANARY@/pwned"] = b"x"
done = {"t": "done", "artifacts": ["..@CANARY@/pwned"] * 40, "blobs": [1 << 26] * 40}
data = json.dumps(done).encode()
try:
    os.write(3, struct.pack(">I", len(data)) + data)
except OSError:
    pass
