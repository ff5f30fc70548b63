# Sleeps beyond the limit in C.
# breach: hang
import time
time.sleep(60)
