# Swallows the timeout exception by except Exception.
# breach: hang, cpu
while True:
    try:
        while True: pass
    except Exception: pass
