# Memory corruption: crash by ctypes / bad bytecode.
# breach: dead
import types
def f(): pass
c = f.__code__.replace(co_code=bytes([100, 255]*20 + [83, 0]), co_consts=())
f.__code__ = c
f()
