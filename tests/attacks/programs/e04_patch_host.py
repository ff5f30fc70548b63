# Changes host modules (json.dumps) for later runs.
# breach: tamper
import json
json.dumps = lambda *a, **k: 'PWNED'
