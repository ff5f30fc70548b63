# Io / codecs open through an allowed module.
# breach: leak
import json
print(json.codecs.open('@CANARY@/secret.txt').read())
