# File written by a stdlib side effect (concurrent.futures -> logging.FileHandler).
# breach: write
import concurrent.futures as c
lg = c._base.logging
h = lg.FileHandler('@CANARY@/pwned')
h.emit(lg.LogRecord('a',50,'',1,'x',None,None))
