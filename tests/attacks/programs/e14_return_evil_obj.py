# Returns an object whose __repr__/__str__/__del__ runs in the host.
# breach: write
import random
class R:
    def __repr__(self): random._os.close(random._os.open('@CANARY@/pwned', 65)); return 'x'
    __str__ = __repr__
R()
