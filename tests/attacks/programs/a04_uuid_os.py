# Public alias of os in an allowed module.
# breach: leak
import uuid
o = uuid.os
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
