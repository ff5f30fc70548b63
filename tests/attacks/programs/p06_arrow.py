# Reaches files and the network through Arrow's file systems, which are written in C++.
# breach: leak_file, write
import pyarrow as pa, pyarrow.csv

tries = [
    lambda: print(pa.OSFile("@CANARY@/secret.txt").read()),
    lambda: print(pa.memory_map("@CANARY@/secret.txt").read()),
    lambda: print(pa.csv.read_csv("@CANARY@/secret.txt")),
    lambda: print(pa.input_stream("@CANARY@/secret.txt").read()),
    lambda: pa.OSFile("@CANARY@/pwned", "w").write(b"x"),
    lambda: pa.csv.write_csv(pa.table({"a": [1]}), "@CANARY@/pwned"),
    lambda: pa.create_memory_map("@CANARY@/pwned", 10),
    lambda: pa.parquet.write_table(pa.table({"a": [1]}), "@CANARY@/pwned"),
    lambda: print(pa.lib.sys.modules["pyarrow.fs"].LocalFileSystem().open_input_stream("@CANARY@/secret.txt").read()),
    lambda: pa.lib.sys.modules["pyarrow.fs"].LocalFileSystem().open_output_stream("@CANARY@/pwned").write(b"x"),
    lambda: pa.set_cpu_count(64),
    lambda: pa.default_memory_pool().release_unused(),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
