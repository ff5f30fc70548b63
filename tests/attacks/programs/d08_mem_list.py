# Growing lists.
# breach: mem
x = []
while True: x.append([0]*100000)
