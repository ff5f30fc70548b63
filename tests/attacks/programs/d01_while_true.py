# Endless loop.
# breach: hang, cpu
while True: pass
