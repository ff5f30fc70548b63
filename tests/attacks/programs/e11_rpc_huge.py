# Huge frame length, then gigabytes.
# breach: mem, hang
import os
os.write(3, b'\xff\xff\xff\xff')
b = b'x' * (1 << 20)
while True: os.write(3, b)
