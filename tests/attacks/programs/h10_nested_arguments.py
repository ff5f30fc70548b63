# Sends arguments that are nested deep, wide or both, as the stubs send them and as they would refuse to.
# breach: neighbour, hang, mem, dead
import json, os, struct

deep = "[" * 90 + "]" * 90
for text in (deep, "[" * 50_000 + "]" * 50_000, "[" + "{}," * 300_000 + "{}]", "[" + '{"a":[{}]},' * 80_000 + "1]"):
    for value in (text, '{"a":' + text + "}"):
        body = '{"t":"call","id":%d,"name":"add","args":[%s,%s],"kwargs":{},"wait":true,"line":1,"clock":[]}'
        try:
            value = json.loads(value)
            for _ in range(20):
                add(value, value)
        except Exception as error:
            print(type(error).__name__, str(error)[:100])
data = (body % (1, "[" * 400_000 + "]" * 400_000, "1")).encode()
while True:
    os.write(3, struct.pack(">I", len(data)) + data)
    os.read(3, 1 << 16)
