# Abstract unix socket of the host.
# breach: net
import socket
s = socket.socket(socket.AF_UNIX); s.connect('\0@ABSTRACT@'); s.send(b'hi')
