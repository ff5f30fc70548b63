# Takes more threads than one program may have, so that none are left for others.
# breach: kernel, threads
import threading

threading.stack_size(65_536)
until, started = threading.Event(), 0
try:
    while started < 300:
        threading.Thread(target=until.wait, daemon=True).start()
        started += 1
except RuntimeError as error:
    print(error)
until.set()
if started > 128:
    print("GOT", started, "threads")
