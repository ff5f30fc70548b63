# /proc/self/environ, /proc/self/mem.
# breach: leak
print(open('/proc/self/environ').read())
