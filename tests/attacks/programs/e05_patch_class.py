# Changes a host class attribute by setattr.
# breach: tamper
import uuid
uuid.uuid4 = lambda: 'PWNED'
import json
setattr(json, 'dumps', lambda *a, **k: 'PWNED')
