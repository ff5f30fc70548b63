# Makes allowed calls with odd arguments: urgent data on a socket, advice to merge memory, clocks and limits of others.
# breach: kernel
import struct, typing

ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
socket = typing.sys.modules.get("socket") or __import__("socket")
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = ctypes.c_void_p(libc.mmap(None, 4096, 3, 0x22, -1, 0))
room = ctypes.create_string_buffer(64)
ours, theirs = socket.socketpair()
tries = {
    "urgent data": lambda: libc.send(ours.fileno(), b"x", 1, 1),
    "urgent data by the channel": lambda: libc.send(3, b"x", 1, 1),
    "reading urgent data": lambda: libc.recv(theirs.fileno(), room, 1, 1 | 64),
    "a descriptor in a message": lambda: socket.send_fds(ours, [b"x"], [3]) - 1,
    "datagrams": lambda: libc.socketpair(1, 2, 0, room),
    "packets": lambda: libc.socketpair(1, 5, 0, room),
    "merging pages with other processes": lambda: libc.madvise(page, 4096, 12),
    "poisoning a page": lambda: libc.madvise(page, 4096, 100),
    "who the peer is": lambda: libc.getsockopt(3, 1, 17, room, ctypes.byref(ctypes.c_int(12))),
    "signals for a socket": lambda: libc.fcntl(3, 8, 1),
    "who gets them": lambda: libc.fcntl(3, 15, room),
    "leases": lambda: libc.fcntl(3, 1024, 1),
    "a pipe of another size": lambda: libc.fcntl(3, 1031, 1 << 20),
    "input for a terminal": lambda: libc.ioctl(3, 0x5412, b"x"),
    "signals on input": lambda: libc.ioctl(3, 0x5452, room),
    "the limits of its parent": lambda: libc.prlimit(1, 7, room, None),
    "reading the limits of the first process": lambda: libc.prlimit(1, 7, None, room),
    "reading the limits of its parent": lambda: libc.prlimit(libc.getppid() or 1, 7, None, room),
    "the processors of the first process": lambda: libc.sched_getaffinity(1, 64, room),
    "a process as a clone": lambda: libc.syscall(56, 0x11, 0, 0, 0, 0),
}
for pid in (1, 2, 4, 5, 6, 7, 8):
    tries[f"the time that {pid} computed"] = lambda pid=pid: libc.clock_gettime(~pid << 3 | 2, room)
for name, each in tries.items():
    try:
        found = each()
    except Exception as error:
        found = -1
    print("GOT" if found >= 0 else "refused", name, flush=True)
