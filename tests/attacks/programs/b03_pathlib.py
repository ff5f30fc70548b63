# Pathlib write/read.
# breach: leak, write
import pathlib
pathlib.Path('@CANARY@/pwned').write_text('x')
print(pathlib.Path('@CANARY@/secret.txt').read_text())
