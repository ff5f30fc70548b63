# Deeply nested structure freed, hashed and compared.
# breach: dead
t = ()
for i in range(3000000): t = (t,)
try: hash(t)
except RecursionError: print('r')
u = ()
for i in range(300000): u = (u,)
print(t == u)
