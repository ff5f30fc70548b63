# Has the kernel end other processes before its own when memory runs out.
# breach: kernel
import typing

os = typing.sys.modules["os"]
for place in ("/proc/self/oom_score_adj", "/proc/thread-self/oom_score_adj", f"/proc/{os.getpid()}/oom_score_adj"):
    try:
        descriptor = os.open(place, os.O_WRONLY)
        print("GOT", os.write(descriptor, b"0"), "bytes into", place)
    except OSError as error:
        print(error)
