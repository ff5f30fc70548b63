# Endless loop in C.
# breach: hang, cpu
print(sum(range(10**11)))
