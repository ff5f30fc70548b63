# Sys via dataclasses.
# breach: leak
import dataclasses
o = dataclasses.sys.modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
