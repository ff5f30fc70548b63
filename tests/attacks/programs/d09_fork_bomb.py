# Fork bomb.
# breach: procs
import os, time
for i in range(200):
    try:
        if os.fork() == 0: time.sleep(20)
    except OSError as e: pass
time.sleep(5)
