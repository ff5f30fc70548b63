# TCP connect to loopback.
# breach: net
import socket
s = socket.create_connection(('127.0.0.1', @TCP@), 2); s.send(b'hi')
