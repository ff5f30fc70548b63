# A result that is small inside and endless outside: shared lists, a dict of itself, ten million keys.
# breach: mem, hang, dead
shared = ["x" * 1000]
for _ in range(60):
    shared = [shared, shared]
loop = {}
loop["loop"] = loop
for call in (lambda: add(shared, 1), lambda: add(loop, 1), lambda: add({n: n for n in range(3_000_000)}, 1)):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error)[:100])
shared
