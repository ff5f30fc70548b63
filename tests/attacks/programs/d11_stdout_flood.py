# Endless output.
# breach: mem, flood
while True: print('x'*100000)
