# Call without Call node: decorator + __class_getitem__.
# breach: leak
import random
g = getattr
@lambda f: g(random, '_'+'os')
def o(): pass
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
