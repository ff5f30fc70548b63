# Sys via typing, then sys.modules.
# breach: leak
import typing
o = typing.sys.modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
