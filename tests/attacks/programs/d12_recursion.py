# Deep recursion in C and Python (host crash).
# breach: dead
def f(n): return f(n+1)
try: f(0)
except RecursionError: pass
x = []
for i in range(500000): x = [x]
print(repr(x)[:10])
