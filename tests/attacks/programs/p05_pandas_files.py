# Reads files and addresses of the host through pandas, and writes files with it.
# breach: leak_file, write, net_tcp
import pandas as pd

table = pd.DataFrame({"a": [1]})
tries = [
    lambda: print(pd.read_csv("@CANARY@/secret.txt", header=None).to_string()),
    lambda: print(pd.read_table("@CANARY@/secret.txt", header=None, engine="python").to_string()),
    lambda: print(pd.read_csv("@CANARY@/secret.txt", header=None, memory_map=True).to_string()),
    lambda: print(pd.read_csv("@CANARY@/secret.txt", header=None, engine="pyarrow").to_string()),
    lambda: print(pd.read_csv("file://@CANARY@/secret.txt", header=None).to_string()),
    lambda: print(pd.read_fwf("@CANARY@/secret.txt", header=None).to_string()),
    lambda: print(pd.io.common.get_handle("@CANARY@/secret.txt", "r").handle.read()),
    lambda: print(pd.io.common.mmap.mmap(3, 0)),
    lambda: table.to_csv("@CANARY@/pwned"),
    lambda: table.to_pickle("@CANARY@/pwned"),
    lambda: table.to_parquet("@CANARY@/pwned"),
    lambda: table.to_csv("artifacts/../../..@CANARY@/pwned"),
    lambda: table.to_json("@CANARY@/pwned"),
    lambda: pd.read_csv("http://127.0.0.1:@TCP@/a.csv"),
    lambda: pd.read_json("http://127.0.0.1:@TCP@/a.json"),
    lambda: pd.read_html("http://127.0.0.1:@TCP@/"),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
