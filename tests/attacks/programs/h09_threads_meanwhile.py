# Computes in threads while it sleeps, in small pieces, since sleeping is not counted.
# breach: hang, late, cpu
import hashlib, threading, time

block = b"x" * (1 << 22)


def compute():
    while True:
        hashlib.sha256(block).digest()


for _ in range(8):
    threading.Thread(target=compute, daemon=True).start()
while True:
    time.sleep(0.01)
