# Leaves a process behind that nobody waits for: two forks, a session of its own, a spawn, a thread that outlives.
# breach: procs, write
import threading, time, typing

os = typing.sys.modules["os"]
for make in (
    lambda: os.fork(),
    lambda: os.forkpty(),
    lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "echo x > @CANARY@/pwned; sleep 60"], {}),
    lambda: os.execv("/bin/sh", ["sh", "-c", "echo x > @CANARY@/pwned"]),
):
    try:
        if make() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
    except Exception as error:
        print(error)
threading.Thread(target=time.sleep, args=(60,)).start()
