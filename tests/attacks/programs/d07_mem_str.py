# 'a'*10**10.
# breach: mem
n = 10**5
x = 'a' * (n*n)
print(len(x))
