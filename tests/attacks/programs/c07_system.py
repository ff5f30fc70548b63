# Os.system / subprocess.
# breach: write
import subprocess
subprocess.run('echo x > @CANARY@/pwned', shell=True)
