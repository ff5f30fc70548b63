# Plain open() of a file.
# breach: leak
print(open('@CANARY@/secret.txt').read())
