# Asyncio.create_subprocess_shell.
# breach: write
import asyncio
async def m():
    p = await asyncio.create_subprocess_shell('echo x > @CANARY@/pwned'); await p.wait()
asyncio.run(m())
