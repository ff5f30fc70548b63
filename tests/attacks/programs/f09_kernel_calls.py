# Asks the kernel for what no program needs, by number: io_uring, bpf, keys, userfaultfd, perf, mounts, namespaces.
# breach: kernel
import typing

ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
libc = ctypes.CDLL(None, use_errno=True)
arm = typing.sys.modules["os"].uname().machine == "aarch64"
numbers = {
    "io_uring_setup": 425, "bpf": 280 if arm else 321, "userfaultfd": 282 if arm else 323, "add_key": 217 if arm else 248,
    "perf_event_open": 241 if arm else 298, "unshare": 97 if arm else 272, "open_tree": 428, "fsopen": 430,
    "memfd_secret": 447, "pidfd_open": 434, "process_madvise": 440, "name_to_handle_at": 264 if arm else 303,
    "socket": 198 if arm else 41, "openat": 56 if arm else 257, "openat2": 437, "landlock_create_ruleset": 444,
}
room = ctypes.create_string_buffer(256)
for name in sorted(numbers, key=lambda name: name in ("bpf", "unshare", "add_key", "io_uring_setup", "userfaultfd")):
    found = libc.syscall(numbers[name], 1, room, 64, 0, 0)
    print("GOT" if found >= 0 else "refused", name, flush=True)
