# Ignores signals and alarms, then loops.
# breach: hang, cpu
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.alarm(0)
while True: pass
