# Os via concurrent.futures.thread.
# breach: leak
import concurrent.futures
o = concurrent.futures.thread.os
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
