# Keeps memory where a limit on address space does not count it: files in memory, full sockets, pipes.
# breach: mem
import typing

os, socket = typing.sys.modules["os"], typing.sys.modules.get("socket") or __import__("socket")
kept, block = [], b"x" * (1 << 20)
for _ in range(1500):
    try:
        fd = os.memfd_create("m")
        os.write(fd, block)
        kept.append(fd)
    except Exception as error:
        print("memfd", error)
        break
for _ in range(5000):
    try:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        kept.append(pair)
        while True:
            pair[0].send(block)
    except BlockingIOError:
        pass
    except Exception as error:
        print("socket", error)
        break
while True:
    pass
