# Atexit / __del__ code that runs in the host later.
# breach: write
import random
class D:
    def __del__(self): random._os.close(random._os.open('@CANARY@/pwned', 65))
d = D()
d.me = d
