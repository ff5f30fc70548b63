# Plain write.
# breach: write
open('@CANARY@/pwned','w').write('x')
