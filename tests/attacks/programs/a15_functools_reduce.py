# Getattr by functools.reduce over a path.
# breach: leak
import functools
o = functools.reduce(getattr, ['_'+'os'], __import__('random'))
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
