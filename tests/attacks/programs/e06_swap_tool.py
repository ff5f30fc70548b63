# Replaces the code object of a host tool.
# breach: tamper
def evil(a, b): return 'PWNED'
for name in ('__wrapped__', 'fn'):
    pass
f = add
c = getattr(f, '__clo'+'sure__', None) or ()
for x in c:
    v = x.cell_contents
    fn = getattr(v, 'fn', None)
    if fn is not None: setattr(fn, '__co'+'de__', getattr(evil, '__co'+'de__'))
try: setattr(f, '__co'+'de__', getattr(evil, '__co'+'de__'))
except Exception as e: print(e)
