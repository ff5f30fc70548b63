# Raise SystemExit / KeyboardInterrupt through the host.
# breach: dead, baseexc
import asyncio
raise asyncio.CancelledError('x')
