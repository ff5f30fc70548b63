# Statistics -> random -> os.
# breach: leak
import statistics
o = statistics.random._os
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
