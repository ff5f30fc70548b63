# Opens, attaches and writes databases that are files, and loads code into SQLite.
# breach: write, leak_file
import sqlite3

kept = sqlite3.connect(":memory:")
tries = [
    lambda: sqlite3.connect("@CANARY@/pwned").execute("create table a (b)").connection.commit(),
    lambda: kept.execute("attach '@CANARY@/pwned' as other").execute("create table other.a (b)"),
    lambda: kept.execute("attach 'file:@CANARY@/pwned?mode=rwc' as another").execute("create table another.a (b)"),
    lambda: kept.execute("vacuum into '@CANARY@/pwned'"),
    lambda: kept.enable_load_extension(True),
    lambda: kept.execute("select load_extension('@CANARY@/secret.txt')"),
    lambda: print(kept.execute("select readfile('@CANARY@/secret.txt')").fetchall()),
    lambda: kept.backup(sqlite3.connect("@CANARY@/pwned")),
    lambda: kept.execute("pragma temp_store_directory = '@CANARY@'"),
]
for each in tries:
    try:
        each()
    except Exception as error:
        print(type(error).__name__, error)
