# Asks for the approval of thousands of calls at once, each with long arguments.
# breach: neighbour, hang, mem, late, tamper
import asyncio

made = [wipe() for _ in range(4_000)]
await asyncio.gather(*made, return_exceptions=True)
