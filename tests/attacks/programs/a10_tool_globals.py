# __globals__ of a host tool function.
# breach: leak
g = getattr(add, '__glo'+'bals__')
b = g['__builtins__']
imp = b['__import__'] if isinstance(b, dict) else b.__import__
o = imp('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
