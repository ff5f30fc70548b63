# Prints one character a frame, for ever: many small messages instead of a large one.
# breach: hang, cpu, flood
import sys

while True:
    sys.stdout.write("x")
    sys.stdout.flush()
