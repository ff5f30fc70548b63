# Chroot / mount / symlink games.
# breach: leak
import os
for f in (lambda: os.chroot('.'), lambda: os.chdir('..'), lambda: os.symlink('/tmp','x'), lambda: os.mkdir('/x')):
    try: print(f())
    except Exception as e: print(e)
print(open('@CANARY@/secret.txt').read())
