# Plain import of importlib, os, subprocess.
# breach: leak
o = __import__('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
