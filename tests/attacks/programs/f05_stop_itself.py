# Stops its own process, so that it neither ends nor computes.
# breach: hang
import signal, typing

os = typing.sys.modules["os"]
os.kill(os.getpid(), signal.SIGSTOP) if hasattr(signal, "SIGSTOP") else None
import threading

lock = threading.Lock()
lock.acquire()
lock.acquire()
