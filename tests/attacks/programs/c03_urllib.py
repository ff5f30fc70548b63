# Urllib.request reached from urllib.parse.
# breach: net
import urllib.parse
import urllib.request
urllib.request.urlopen('http://127.0.0.1:@TCP@/', timeout=2)
