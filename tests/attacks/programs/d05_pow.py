# Big integer power.
# breach: hang, cpu
x = 7 ** (10**9)
print(len(str(x)))
