# Computes in C for as long as it can, where no signal of Python's is looked at, and takes all the memory there is.
# breach: late, hang, mem
import numpy as np

kept = []
try:
    while True:
        kept.append(np.ones(4_000_000))
except MemoryError as error:
    print(error)
kept.clear()
try:
    big = np.ones((1500, 1500))
    while True:
        np.linalg.svd(big)
except BaseException as error:
    print(error)
while True:
    np.sort(np.random.rand(1_000_000))
