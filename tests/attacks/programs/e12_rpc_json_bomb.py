# Deeply nested JSON, a huge integer, NaN, lone surrogates.
# breach: dead, hang, baseexc
import os, struct

for data in (
    b"[" * 200000,
    b'{"t":"done","v":' + b"9" * 4000000 + b"}",
    b'{"t":"done","v":' + b"[" * 50000 + b"]" * 50000 + b"}",
    b'{"t":"out","s":"\\ud800","err":false}',
    b'{"t":"done","v":NaN}',
):
    os.write(3, struct.pack(">I", len(data)) + data)
