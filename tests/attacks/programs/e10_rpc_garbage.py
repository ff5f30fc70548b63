# Garbage frames.
# breach: dead, hang, baseexc
import os
os.write(3, os.urandom(100000))
while True: os.write(3, b'\0\0\0\x05[[[[[' )
