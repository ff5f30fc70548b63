# Reads and writes files of the host through numpy's own readers and writers.
# breach: leak_file, write
import numpy as np

tries = [
    lambda: print(bytes(np.memmap("@CANARY@/secret.txt", mode="r"))),
    lambda: print(bytes(np.fromfile("@CANARY@/secret.txt", dtype="u1"))),
    lambda: print(np.genfromtxt("@CANARY@/secret.txt", dtype=str)),
    lambda: print(np.loadtxt("@CANARY@/secret.txt", dtype=str)),
    lambda: print(np.lib.npyio.DataSource(None).open("@CANARY@/secret.txt").read()),
    lambda: np.arange(9).tofile("@CANARY@/pwned"),
    lambda: np.memmap("@CANARY@/pwned", mode="w+", shape=(9,)),
    lambda: np.lib.format.open_memmap("@CANARY@/pwned", mode="w+", shape=(9,)),
    lambda: np.savetxt("@CANARY@/pwned", [1, 2]),
    lambda: np.arange(9).dump("@CANARY@/pwned"),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
