# Metaclass __prepare__/__instancecheck__ trick to get a host frame.
# breach: leak
class M(type):
    def __instancecheck__(cls, x): return True
class C(metaclass=M): pass
import types
m = types.ModuleType('m')
l = m.__loader__ if getattr(m,'__loader__',None) else type(types.__spec__.loader)
import sys as s
o = s.modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
