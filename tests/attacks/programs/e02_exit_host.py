# Os._exit through an allowed module.
# breach: dead
import random
random._os._exit(7)
