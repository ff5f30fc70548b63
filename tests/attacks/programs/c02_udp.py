# UDP send to loopback (which Landlock does not cover).
# breach: net
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'hi', ('127.0.0.1', @UDP@))
