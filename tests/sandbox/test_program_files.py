"""Files in, artifacts out: a program sees the files that it was given, and leaves what it writes to `artifacts/`."""

from __future__ import annotations

import io
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.code.hosts import TableHost
from toolcrib.sandbox import ProcessSandbox, Program, SandboxLimits, SandboxResult, read_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")


def _zipped() -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as archive:
        archive.writestr("a.txt", "zipped")
    return kept.getvalue()


FILES = {"sales.csv": b"day,amount\n1,2\n3,4\n", "data/more.json": b'{"a": [1]}', "all.zip": _zipped()}


@pytest.fixture(scope="module")
def plain() -> Iterator[ProcessSandbox]:
    with ProcessSandbox() as made:
        yield made


@pytest.fixture(scope="module")
def arrow() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(packages=["pandas", "pyarrow"]) as made:
        yield made


@pytest.fixture(scope="module")
def packed() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(packages=["numpy", "pandas", "matplotlib"]) as made:
        yield made


async def ran(sandbox: ProcessSandbox, code: str, **limits: Any) -> SandboxResult:
    """Run a program that is given the files."""
    return await sandbox.run(Program(code, limits=SandboxLimits(**limits), files=FILES), TableHost())


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("open('sales.csv').read()", FILES["sales.csv"].decode()),
        ("open('sales.csv', 'rb').readline()", "day,amount\n"),
        ("with open('./data/../sales.csv') as file: lines = list(file)\nlen(lines)", 3),
        ("import csv\nlist(csv.DictReader(open('sales.csv', newline='')))[1]", {"day": "3", "amount": "4"}),
        ("import json\njson.load(open('data/more.json'))", {"a": [1]}),
        ("import pathlib\npathlib.Path('sales.csv').read_text()[:3]", "day"),
        (
            "import pathlib\nsorted(map(str, pathlib.Path('.').rglob('*.*')))",
            ["all.zip", "data/more.json", "sales.csv"],
        ),
        ("import zipfile\nzipfile.ZipFile('all.zip').read('a.txt')", "zipped"),
        ("import os\nos.listdir()", ["all.zip", "artifacts", "data", "sales.csv"]),
        ("import os\nos.listdir(os.path.join(os.getcwd(), 'data'))", ["more.json"]),
        ("import os\n[os.path.exists(name) for name in ('sales.csv', 'data', 'x', '/etc/passwd')]", [1, 1, 0, 0]),
        ("import os\n[os.path.isfile('data'), os.path.isdir('data'), os.path.getsize('sales.csv')]", [0, 1, 19]),
        ("import os\n[names for _, _, names in os.walk('data')]", [["more.json"]]),
        ("import os\n[entry.name for entry in os.scandir('.') if entry.is_dir()]", ["artifacts", "data"]),
        ("import glob\nglob.glob('**/*.json', recursive=True)", ["data/more.json"]),
        ("import os\nos.access('sales.csv', os.R_OK), os.access('sales.csv', os.W_OK)", [True, False]),
        ("import io\nio.open('sales.csv').readline()", "day,amount\n"),
    ],
)
async def test_a_program_reads_its_files(plain: ProcessSandbox, code: str, value: Any) -> None:
    result = await ran(plain, code)

    assert result.error is None
    assert result.value == value
    assert result.artifacts == ()


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import pandas as pd\nint(pd.read_csv('sales.csv').amount.sum())", 6),
        ("import numpy as np\nnp.loadtxt('sales.csv', delimiter=',', skiprows=1).tolist()", [[1.0, 2.0], [3.0, 4.0]]),
        ("import numpy as np\nnp.save('artifacts/a', np.ones(2))\nnp.load('artifacts/a.npy').tolist()", [1.0, 1.0]),
    ],
)
async def test_packages_read_and_write_files(packed: ProcessSandbox, code: str, value: Any) -> None:
    result = await ran(packed, code)

    assert result.error is None
    assert result.value == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (
            "os.chdir('data')\n[os.getcwd(), os.listdir(), len(open('more.json').read())]",
            ["/program/data", ["more.json"], 10],
        ),
        ("os.chdir('data')\nos.chdir('..')\npathlib.Path.cwd().name, os.path.exists('sales.csv')", ["program", True]),
        (
            "kept = tempfile.NamedTemporaryFile('w', suffix='.csv', delete=False)\nkept.write('a')\nkept.close()\n"
            "kept.name, open(kept.name).read()",
            ["/tmp/tmp1.csv", "a"],
        ),
        (
            "with tempfile.TemporaryDirectory() as folder:\n  open(f'{folder}/a', 'w').write('a')\n"
            "  os.makedirs(f'{folder}/b/c')\n  found = os.listdir(folder)\n"
            "found, os.path.exists(folder), tempfile.gettempdir()",
            [["a", "b"], False, "/tmp"],
        ),
        ("kept = tempfile.TemporaryFile()\nkept.write(b'a')\nkept.seek(0)\nkept.read()", "a"),
        ("kept = tempfile.SpooledTemporaryFile(1)\nkept.write(b'ab')\nkept.seek(0)\nkept.read()", "ab"),
        ("open('/tmp/a', 'w').write('a')\nos.rename('/tmp/a', '/tmp/b')\nos.listdir('/tmp')", ["b"]),
        (
            "os.makedirs('/tmp/a/b')\nopen('/tmp/a/b/c', 'w').write('c')\nshutil.rmtree('/tmp/a')\nos.listdir('/tmp')",
            [],
        ),
    ],
)
async def test_a_program_has_temporary_files_and_a_folder_of_its_choice(
    plain: ProcessSandbox, code: str, value: Any
) -> None:
    result = await ran(plain, f"import os, pathlib, shutil, tempfile\n{code}")

    assert (result.error, result.value, result.artifacts) == (None, value, ())


def _database(mode: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        kept = sqlite3.connect(f"{folder}/x.db")
        kept.execute(f"pragma journal_mode={mode}")
        kept.execute("create table t(a)")
        kept.execute("insert into t values (7)")
        kept.commit()
        kept.close()
        return Path(folder, "x.db").read_bytes()


DATABASES = {"x.db": _database("delete"), "data/log.db": _database("wal")}


@pytest.mark.parametrize(
    "call",
    ["'x.db'", "pathlib.Path('x.db')", "'data/log.db'", "'file:x.db?mode=ro', uri=True", "'/program/x.db', timeout=1"],
)
async def test_a_program_reads_a_database_by_its_name(plain: ProcessSandbox, call: str) -> None:
    code = f"import sqlite3, pathlib\nsqlite3.connect({call}).execute('select a from t').fetchall()"

    result = await plain.run(Program(code, files=DATABASES), TableHost())

    assert (result.error, result.value) == (None, [[7]])


@pytest.mark.parametrize(
    ("ending", "rows"),
    [
        ("kept.commit()\nkept.close()", 1),
        ("kept.commit()", 1),
        ("kept.commit()\nkept.execute('insert into t values (2)')", 1),
        ("kept.commit()\nkept = None", 1),
        ("kept.execute('create table u(a)')", 0),
    ],
)
async def test_a_program_leaves_a_database_with_what_was_committed(
    plain: ProcessSandbox, ending: str, rows: int, tmp_path: Path
) -> None:
    code = "import sqlite3\nkept = sqlite3.connect('artifacts/out.db')\nkept.execute('create table t(a)')\n"

    result = await ran(plain, f"{code}kept.execute('insert into t values (1)')\n{ending}\nNone")

    assert result.error is None
    (tmp_path / "out.db").write_bytes(result.artifacts[0].data)
    with closing(sqlite3.connect(tmp_path / "out.db")) as kept:
        assert kept.execute("select count(*) from t").fetchone() == (rows,)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("pq.write_table(table, 'artifacts/a.parquet')\npq.read_table('artifacts/a.parquet').to_pylist()", [{"a": 1}]),
        (
            "pq.write_table(table, where='/tmp/a')\npq.ParquetFile(pathlib.Path('/tmp/a')).read().to_pylist()",
            [{"a": 1}],
        ),
        ("frame.to_parquet('artifacts/a.parquet')\npd.read_parquet('artifacts/a.parquet').a.tolist()", [1]),
        ("frame.to_feather('/tmp/a')\npd.read_feather('/tmp/a').a.tolist()", [1]),
        ("csv.write_csv(table, 'artifacts/a.csv')\ncsv.read_csv(input_file='artifacts/a.csv').to_pylist()", [{"a": 1}]),
        ("csv.read_csv('sales.csv')['amount'].to_pylist()", [2, 4]),
        ("json.read_json('data/more.json').to_pylist()", [{"a": [1]}]),
        ("pa.memory_map('sales.csv').read()[:3], pa.OSFile('sales.csv').size()", ["day", 19]),
    ],
)
async def test_pyarrow_reads_and_writes_files_by_name(arrow: ProcessSandbox, code: str, value: Any) -> None:
    start = (
        "import pathlib, pandas as pd, pyarrow as pa, pyarrow.csv as csv, pyarrow.json as json, pyarrow.parquet as pq"
    )

    result = await ran(arrow, f"{start}\ntable = pa.table({{'a': [1]}})\nframe = table.to_pandas()\n{code}")

    assert (result.error, result.value) == (None, value)


async def test_what_reads_files_past_python_names_what_to_do(arrow: ProcessSandbox) -> None:
    result = await ran(arrow, "import pyarrow.dataset as ds\nds.dataset('sales.csv')")

    assert "pyarrow.dataset opens no file of a program; take pyarrow.parquet.read_table(name)" in str(result.error)


@pytest.mark.parametrize(
    ("code", "artifacts"),
    [
        ("open('artifacts/a.csv', 'w').write('a,b')", {"a.csv": ("text/csv", b"a,b")}),
        (
            "file = open('artifacts/a', 'wb')\nfile.write(b'left open')",
            {"a": ("application/octet-stream", b"left open")},
        ),
        (
            "import pathlib\npathlib.Path('artifacts/deep/a.json').write_text('{}')",
            {"deep/a.json": ("application/json", b"{}")},
        ),
        (
            "for part in 'ab':\n  with open('artifacts/a.txt', 'a') as file: file.write(part)",
            {"a.txt": ("text/plain", b"ab")},
        ),
        (
            "import shutil, os\nos.makedirs('artifacts/deep', exist_ok=True)\n"
            "shutil.copy('sales.csv', 'artifacts/a.csv')\nos.rename('artifacts/a.csv', 'artifacts/deep/b.csv')",
            {"deep/b.csv": ("text/csv", FILES["sales.csv"])},
        ),
        ("import os\nopen('artifacts/a', 'w').write('a')\nos.remove('artifacts/a')", {}),
        (
            "with open('artifacts/a.txt', 'w+') as file:\n  file.write('abc')\n  file.seek(1)\n  file.write('x')",
            {"a.txt": ("text/plain", b"axc")},
        ),
        ("open('artifacts/a.txt', 'w').write('kept')\n1 / 0", {"a.txt": ("text/plain", b"kept")}),
    ],
)
async def test_what_a_program_writes_comes_back(
    plain: ProcessSandbox, code: str, artifacts: dict[str, tuple[str, bytes]]
) -> None:
    result = await ran(plain, code)

    assert {each.name: (each.mime_type, each.data) for each in result.artifacts} == artifacts


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "open('sale.csv')",
            "FileNotFoundError (line 1): [Errno 2] No such file or directory; there are: sales.csv, data",
        ),
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open('data')", "IsADirectoryError"),
        (
            "open('sales.csv', 'w')",
            "PermissionError (line 1): [Errno 13] a program writes files into artifacts/ alone: ",
        ),
        ("open('chart.png', 'wb')", "write 'artifacts/chart.png'"),
        ("open('artifacts/../../a', 'w')", "PermissionError"),
        ("open('sales.csv', 'r+')", "PermissionError"),
        ("open('sales.csv').write('a')", "UnsupportedOperation (line 1): not writable"),
        ("open('artifacts/a', 'w').read()", "UnsupportedOperation (line 1): not readable"),
        ("import os\nos.remove('sales.csv')", "PermissionError"),
        ("import os\nos.rename('sales.csv', 'artifacts/a')", "PermissionError"),
        ("import os\nos.mkdir('more')", "PermissionError"),
        ("import os\nos.listdir('sales.csv')", "NotADirectoryError"),
        ("open('artifacts/a', 'w').close()\nopen('artifacts/a', 'x')", "FileExistsError"),
        ("open('artifacts/' + 'a' * 300, 'w')", "File name too long"),
        ("open('artifacts/a\\tb.txt', 'w')", "without line breaks, tabs and backslashes"),
        ("open('artifacts/a\u202eb.txt', 'w')", "without line breaks, tabs and backslashes"),
        ("open('sales.csv', 'rw')", "ValueError (line 1): invalid mode: 'rw'"),
        ("open('sales.csv').fileno()", "a file of a program lies in memory, without a descriptor: read its bytes"),
        ("import os\nos.chdir('more')", "No such file or directory; there are: sales.csv"),
        ("import os\nos.chdir('sales.csv')", "NotADirectoryError"),
        ("import os\nos.rmdir('data')", "Directory not empty"),
        ("import os\nos.rmdir('artifacts')", "PermissionError"),
        ("import tempfile\ntempfile.mkstemp()", "take tempfile.NamedTemporaryFile()"),
        (
            "import sqlite3\nsqlite3.connect('new.db')",
            "one is made in artifacts/ alone: 'artifacts/new.db'",
        ),
        ("import sqlite3\nsqlite3.connect('data')", "FileNotFoundError"),
        ("import sqlite3\nsqlite3.connect('sales.csv').execute('select 1 from t')", "file is not a database"),
    ],
)
async def test_what_files_do_not_allow_is_an_error_that_says_so(plain: ProcessSandbox, code: str, says: str) -> None:
    result = await ran(plain, code)

    assert says in str(result.error)


async def test_artifacts_are_bounded_in_number_and_size(plain: ProcessSandbox) -> None:
    many = await ran(plain, "for n in range(4): open(f'artifacts/{n}', 'w')", artifacts=3)
    large = await ran(plain, "for n in range(4): open(f'artifacts/{n}', 'wb').write(b'x' * 400)", bytes_out=1000)
    unclosed = await ran(plain, "open('artifacts/a', 'w').write('x' * 1400)", bytes_out=1000)
    sparse = await ran(plain, "file = open('artifacts/a', 'wb')\nfile.seek(10**9)\nfile.write(b'x')", bytes_out=1000)

    assert "a program may write 3 artifacts, and this is one more (SandboxLimits.artifacts)" in str(many.error)
    assert "artifacts may take 1000 bytes together, and this is more (SandboxLimits.bytes_out)" in str(large.error)
    assert "artifacts may take 1000 bytes together" in str(sparse.error)
    assert "artifacts may take 1000 bytes together" in unclosed.error_output
    assert [len(each.data or b"") for each in large.artifacts] == [400, 400, 0]


@pytest.mark.parametrize(
    "code",
    [
        "open('artifacts/a', 'wb').writelines([b'x' * 600] * 4)",
        "with open('artifacts/a', 'wb') as file: file.writelines([b'x' * 600] * 4)",
        "files = [open(f'artifacts/{n}', 'wb') for n in range(3)]\nfor file in files: file.write(b'x' * 900)",
        "files = [open(f'artifacts/{n}', 'w') for n in range(3)]\nfor file in files: file.write('x' * 900)",
        "file = open('artifacts/a', 'wb')\nfile.__setstate__((b'x' * 5000, 0, None))",
        "from pathlib import Path\nPath('artifacts/a').write_bytes(b'x' * 5000)",
        "import csv\ncsv.writer(open('artifacts/a', 'w')).writerows([['x' * 50]] * 100)",
        "import gzip, random\nwith gzip.open('artifacts/a', 'wb') as file:\n    file.write(random.randbytes(5000))",
        "import zipfile\nwith zipfile.ZipFile('artifacts/a', 'w') as file: file.writestr('b', 'x' * 5000)",
        "import sqlite3\nsqlite3.connect('artifacts/a').execute('create table b (c)')",
        "import pickle\npickle.dump(list(range(5000)), open('artifacts/a', 'wb'))",
    ],
)
@pytest.mark.parametrize("room", [1000, 2000, 1])
async def test_in_whatever_way_a_file_grows_it_has_no_more_room(plain: ProcessSandbox, code: str, room: int) -> None:
    ended = await ran(plain, code, bytes_out=room)

    assert ended.error is None or ended.error.kind == "exception", ended.error
    assert f"artifacts may take {room} bytes together" in f"{ended.error} {ended.error_output}"
    assert sum(len(each.data or b"") for each in ended.artifacts) <= room


async def test_a_table_and_artifacts_leave_together(packed: ProcessSandbox) -> None:
    code = "import pandas as pd\nopen('artifacts/a', 'w').write('x' * 700)\npd.DataFrame({'a': range(100)})"

    fits, does_not = await ran(packed, code, bytes_out=2000), await ran(packed, code, bytes_out=1000)

    assert fits.error is None
    assert fits.value.shape == (100, 1)
    assert [len(each.data or b"") for each in fits.artifacts] == [700]
    assert "its tables take 1200 bytes beside artifacts of 700, and 1000 is the most" in str(does_not.error)
    assert [len(each.data or b"") for each in does_not.artifacts] == [700]


async def test_files_that_do_not_fit_into_memory_end_the_program(plain: ProcessSandbox) -> None:
    program = Program("1", limits=SandboxLimits(memory=64 << 20), files={"a": bytes(100 << 20)})

    result = await plain.run(program, TableHost())

    assert result.error is not None
    assert result.error.kind == "memory"


async def test_a_session_that_keeps_values_hands_over_artifacts() -> None:
    with ProcessSandbox(keep_values=True) as sandbox:
        result = await sandbox.session().run(Program("a = 1\nopen('artifacts/a', 'w').write('1')"), TableHost())

    assert [each.data for each in result.artifacts] == [b"1"]


async def test_a_database_that_is_read_cannot_be_changed(plain: ProcessSandbox) -> None:
    code = "import sqlite3\nsqlite3.connect('x.db').execute('insert into t values (1)')"

    result = await plain.run(Program(code, files=DATABASES), TableHost())

    assert "attempt to write a readonly database" in str(result.error)


async def test_temporary_files_stay_in_a_session_and_are_bounded_by_its_memory(plain: ProcessSandbox) -> None:
    session = plain.session()
    await session.run(Program("import os\nopen('/tmp/a', 'w').write('a')\nos.chdir('/tmp')"), TableHost())

    kept = await session.run(Program("os.getcwd(), open('a').read()"), TableHost())
    full = await ran(plain, "for n in range(9): open(f'/tmp/{n}', 'wb').write(bytes(20_000_000))", memory=64 << 20)

    assert kept.value == ["/tmp", "a"]
    assert full.error is not None
    assert full.error.kind == "memory"


async def test_programs_share_no_files(plain: ProcessSandbox) -> None:
    await ran(plain, "open('artifacts/a', 'w').write('mine')")

    result = await plain.run(Program("import os\nos.listdir('.'), os.listdir('artifacts')"), TableHost())

    assert result.value == [["artifacts"], []]


FIGURES = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.savefig("artifacts/own.png")
plt.figure()
plt.plot([2, 1])
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (FIGURES, ["own.png", "figure-1.png"]),
        (f"{FIGURES}plt.show()", ["own.png", "figure-1.png", "figure-2.png"]),
        (f"{FIGURES}plt.close()", ["own.png"]),
        (f"{FIGURES}plt.gcf().show()", ["own.png", "figure-1.png"]),
        (f"{FIGURES}1 / 0", ["own.png"]),
        ("import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot()\n1", ["figure-1.png"]),
    ],
)
async def test_figures_that_are_shown_or_left_open_are_artifacts(
    packed: ProcessSandbox, code: str, names: list[str]
) -> None:
    result = await ran(packed, code)

    assert [each.name for each in result.artifacts] == names
    assert result.error is None or "1 / 0" in code
    assert all(each.mime_type == "image/png" and (each.data or b"")[1:4] == b"PNG" for each in result.artifacts)


def test_files_are_read_from_paths_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1,2")

    assert read_files({"sales.csv": tmp_path / "a.csv", "b/c": b"3"}, 4) == {"sales.csv": b"1,2", "b/c": b"3"}


@pytest.mark.parametrize(
    ("files", "error", "says"),
    [
        ({"../a": b""}, ValueError, "'../a' is not a name for a file of a program: it leads out of the folder"),
        ({"/a": b""}, ValueError, "it leads out of the folder"),
        ({"a//b": b""}, ValueError, "it leads out of the folder"),
        ({"": b""}, ValueError, "it is not a text"),
        ({"a\n": b""}, ValueError, "a character that is not for names"),
        ({"a" * 201: b""}, ValueError, "more than 200 characters"),
        ({"artifacts/a": b""}, ValueError, "that folder is for what the program writes"),
        ({"a": b"12", "b": b"345"}, ValueError, r"with 'b' of 3 bytes, they have more than the 4 bytes .*bytes_in"),
        ({"a": "text"}, TypeError, r"'a' is a str. Give the path of a file, as Path\('sales.csv'\), or its bytes"),
        ({"a": Path("/nowhere/a")}, FileNotFoundError, "nowhere"),
        ({f"{n}": b"" for n in range(1001)}, ValueError, "1000 files at most, and these are 1001"),
        ({"a": Path("/dev/zero")}, ValueError, "the path of 'a', /dev/zero, leads to a device, a pipe or a socket"),
        ({"a": Path("/")}, ValueError, "the path of 'a', /, leads to a folder. Give the path of a file, or bytes"),
        ({"a": Path("/proc/self/status")}, ValueError, r"with 'a' of 5 bytes, they have more than the 4 bytes"),
        ({"a": b"", "a/b/c": b""}, ValueError, "'a' is a file, and the folder of 'a/b/c'. Give one of them another"),
        ({"a/b/c": b"", "a/b": b""}, ValueError, "'a/b' is a file, and the folder of 'a/b/c'"),
        (["sales.csv"], TypeError, r"they are a list. Give a dict, by the names .*files=\{'sales.csv': Path"),
        (Path("sales.csv"), TypeError, "they are a Po?si?x?.*Path. Give a dict"),
    ],
)
def test_files_that_cannot_be_given_are_refused(files: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        read_files(files, 4)


def test_names_that_begin_alike_are_no_folders_of_each_other() -> None:
    assert set(read_files({"a": b"", "a.csv": b"", "ab/c": b"", "b/a": b""}, 4)) == {"a", "a.csv", "ab/c", "b/a"}
