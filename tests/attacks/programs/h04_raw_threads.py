# Makes threads by the C library, of which Python knows nothing, so that none are left for others.
# breach: kernel, threads
import typing

ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
libc = ctypes.CDLL(None, use_errno=True)
libc.malloc.restype = ctypes.c_void_p
attributes, gate = ctypes.create_string_buffer(64), ctypes.c_void_p(libc.malloc(64))  # threads wait at it to the end
libc.pthread_attr_init(attributes)
libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(32_768))
libc.sem_init(gate, 0, 0)
wait, thread, started = ctypes.cast(libc.sem_wait, ctypes.c_void_p), ctypes.c_ulong(), 0
while started < 1_000 and libc.pthread_create(ctypes.byref(thread), attributes, wait, gate) == 0:
    started += 1
for _ in range(started):
    libc.sem_post(gate)
if started > 160:
    print("GOT", started, "threads")
