# Existence and size of a host file through stat.
# breach: leak_stat
import os
print('STAT', os.stat('@CANARY@/secret.txt').st_size)
