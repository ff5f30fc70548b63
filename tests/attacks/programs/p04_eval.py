# Leaves Python through the expressions that pandas evaluates.
# breach: write
import pandas as pd

table = pd.DataFrame({"a": [1, 2]})
os = pd.io.common.os
tries = [
    lambda: table.query("@os.system('echo x > @CANARY@/pwned')"),
    lambda: table.eval("b = @os.system('echo x > @CANARY@/pwned')"),
    lambda: pd.eval("os.system('echo x > @CANARY@/pwned')", engine="python"),
    lambda: table.query("@pd.io.common.os.popen('echo x > @CANARY@/pwned').read()"),
    lambda: pd.eval("__import__('os').system('echo x > @CANARY@/pwned')"),
    lambda: table.assign(b=lambda _: os.system("echo x > @CANARY@/pwned")),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
