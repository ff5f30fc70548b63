# Swallows the timeout exception.
# breach: hang, cpu
while True:
    try:
        while True: pass
    except BaseException: pass
