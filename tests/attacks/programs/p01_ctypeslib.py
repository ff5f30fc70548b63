# Calls the C library past Python, through what numpy brings of ctypes.
# breach: write, leak_file, net_tcp
import numpy as np

try:
    library = np.ctypeslib.ctypes.CDLL(None)
    library.system(b"echo x > @CANARY@/pwned")
    kept = np.ctypeslib.ctypes.create_string_buffer(100)
    descriptor = library.open(b"@CANARY@/secret.txt", 0)
    library.read(descriptor, kept, 99)
    print(kept.value)
except Exception as error:
    print(error)
try:
    np.ctypeslib.load_library("libc.so.6", "/lib/x86_64-linux-gnu").system(b"echo x > @CANARY@/pwned")
except Exception as error:
    print(error)
try:
    np.ctypeslib.ctypes._os.system("echo x > @CANARY@/pwned")
except Exception as error:
    print(error)
