# Os via asyncio.base_events.
# breach: leak
import asyncio
o = asyncio.base_events.os
print(o.environ['SECRET_CANARY'])
fd = o.open('@CANARY@/secret.txt', 0)
print(o.read(fd, 200))
