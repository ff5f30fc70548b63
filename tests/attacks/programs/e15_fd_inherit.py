# Uses inherited descriptors of the host (a file opened in the host without CLOEXEC).
# breach: leak
import os
for fd in range(3, 64):
    try: print(os.pread(fd, 200, 0))
    except OSError: pass
