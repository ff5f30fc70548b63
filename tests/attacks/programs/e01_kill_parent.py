# SIGKILL to the parent and to everything.
# breach: dead
import os, signal
for p in (os.getppid(),):
    try: os.kill(p, signal.SIGKILL)
    except Exception as e: print(e)
