# Calls a host function that was not offered.
# breach: unoffered
g = getattr(add, '__glo'+'bals__')
print(g['secret_tool']())
