# Threads that never end.
# breach: threads
import concurrent.futures as c, time
ex = c.ThreadPoolExecutor(2000)
for i in range(2000): ex.submit(time.sleep, 30)
