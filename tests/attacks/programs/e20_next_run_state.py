# Leaves a back door for the next execution.
# breach: persist
import json, builtins
try: builtins.BACKDOOR = 1
except Exception: pass
try: json.BACKDOOR = 1
except Exception: pass
try:
    global BACKDOOR
    BACKDOOR = 1
except Exception: pass
