# Changes the mutable object returned by a host tool (shared reference).
# breach: tamper
c = get_config()
c['admin'] = True
print(c)
