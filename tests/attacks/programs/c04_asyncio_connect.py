# Asyncio.open_connection (asyncio is an allowed module).
# breach: net
import asyncio
async def m():
    r, w = await asyncio.open_connection('127.0.0.1', @TCP@); w.write(b'hi'); await w.drain()
asyncio.run(m())
