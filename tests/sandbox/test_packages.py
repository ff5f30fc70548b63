"""Packages of the host's environment in programs: loaded before the seal, on one thread, with numbers from the seed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolcrib.sandbox
from tests.code.hosts import TableHost
from tests.sandbox.test_process_pause import Journaled, paused
from toolcrib import Toolkit
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import ProcessSandbox, Program, SandboxLimits, SandboxResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
NAMES = ("numpy", "pandas", "pyarrow", "matplotlib")
_FOLDERS = [folder for folder in sys.path if folder and Path(folder).is_dir()]
_SAMPLES = """
import importlib.util, sys
place, folders, names = sys.argv[1], sys.argv[2].split(":"), sys.argv[3:]
spec = importlib.util.spec_from_file_location("worker", place + "/__init__.py", submodule_search_locations=[place])
sys.modules["worker"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from worker import _entry, _packages
_packages.load_packages(names, folders)
_entry.load_all()
for done in _entry.run_samples(_entry._install, _packages.samples()):
    print(done.get("error") or "ran")
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(packages=NAMES) as made:
        yield made


async def ran(sandbox: ProcessSandbox, code: str, **limits: Any) -> SandboxResult:
    """Run a program that makes no calls."""
    return await sandbox.run(Program(code, limits=SandboxLimits(**limits)), TableHost())


@pytest.mark.parametrize(("names", "samples"), [(NAMES, 5), (("pandas", "matplotlib"), 3), (("PIL.Image",), 1)])
def test_every_sample_of_what_packages_load_late_runs(names: tuple[str, ...], samples: int) -> None:
    place = toolcrib.sandbox.__path__[0] + "/_worker"
    command = [sys.executable, "-P", "-S", "-s", "-c", _SAMPLES, place, ":".join(_FOLDERS), *names]

    done = subprocess.run(command, env={"MPLBACKEND": "Agg"}, capture_output=True, text=True, check=True)

    assert done.stdout.split("\n") == ["ran"] * samples + [""]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import numpy as np\n(np.eye(3) @ np.ones(3)).tolist()", [1.0, 1.0, 1.0]),
        ("import numpy.linalg\nfloat(numpy.linalg.det(numpy.eye(4)))", 1.0),
        (
            "import pandas as pd\nt = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]})\n"
            "t.groupby('a')['b'].sum().to_dict(), int(t.merge(t, on='a')['b_x'].sum())",
            [{"1": 3, "2": 3}, 9],
        ),
        ("import pandas as pd\nstr(pd.Timestamp('2026-07-01', tz='Europe/Oslo').utcoffset())", "2:00:00"),
        (
            "import io, pyarrow.csv\npyarrow.csv.read_csv(io.BytesIO(b'a,b\\n1,2')).to_pylist()",
            [{"a": 1, "b": 2}],
        ),
        (
            "import sqlite3, pandas as pd\nkept = sqlite3.connect(':memory:')\n"
            "pd.DataFrame({'a': [1, 2]}).to_sql('t', kept)\nint(pd.read_sql('select sum(a) s from t', kept).s[0])",
            3,
        ),
        (
            "import io, matplotlib.pyplot as plt\nkept = io.BytesIO()\nplt.plot([1, 2])\nplt.xscale('log')\n"
            "plt.title(r'$\\frac{x^2}{y}$')\n"
            "plt.savefig(kept)\nlist(kept.getvalue()[:4])",
            [0x89, *b"PNG"],
        ),
    ],
)
async def test_a_program_uses_packages(sandbox: ProcessSandbox, code: str, value: Any) -> None:
    result = await ran(sandbox, code)

    assert result.error is None
    assert result.value == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (
            "np.int64(3), np.float32(1.5), np.bool_(True), np.str_('a'), np.float64('inf')",
            [3, 1.5, True, "a", float("inf")],
        ),
        (
            "np.datetime64('2026-01-02T03:04:05.000000006'), np.timedelta64(1, 'D')",
            ["2026-01-02T03:04:05.000000006", "1 days"],
        ),
        ("np.arange(4).reshape(2, 2), np.float64(2)", [[[0, 1], [2, 3]], 2.0]),
        ("pd.Series([1, 2]), pd.Series([1, 2.5]), pd.Index(['a'])", [[1, 2], [1.0, 2.5], ["a"]]),
        ("pd.Series({'a': 1, 'b': 2}), pd.Series([1, 2], index=['a', 'a'])", [{"a": 1, "b": 2}, [1, 2]]),
        (
            "pd.Period('2026-01'), pd.Interval(0, 1), pd.NA, pd.Categorical(['a', 'b'])",
            ["2026-01", "(0, 1]", None, ["a", "b"]],
        ),
        ("{np.int64(1): pd.Timestamp('2026-01-02')}", {"1": "2026-01-02T00:00:00"}),
    ],
)
async def test_values_of_packages_leave_a_program_as_plain_ones(sandbox: ProcessSandbox, code: str, value: Any) -> None:
    result = await ran(sandbox, f"import numpy as np, pandas as pd\n{code}")

    assert result.error is None
    assert result.value == value


async def test_a_plot_as_the_last_value_is_a_text(sandbox: ProcessSandbox) -> None:
    result = await ran(sandbox, "import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot()")
    passed = await sandbox.run(
        Program("import pandas as pd\nadd(pd.DataFrame({'a': [1]}).plot(), 1)", ("add",)), TableHost()
    )

    assert result.value == "<Axes: >"
    assert "has no JSON form" in str(passed.error)


async def test_an_array_that_is_too_large_to_leave_is_refused_before_it_is_a_list(sandbox: ProcessSandbox) -> None:
    result = await ran(sandbox, "import numpy as np\nnp.zeros(10_000_000, dtype='u1')", memory=64 << 20)

    assert "it is larger than 1000000 characters as JSON" in str(result.error)


def test_packages_take_no_layer_away(sandbox: ProcessSandbox) -> None:
    # A thread of a package's own, in the process that is sealed, would cost the namespaces.
    with ProcessSandbox() as bare:
        assert sandbox.layers == bare.layers


async def test_memory_is_counted_from_what_the_packages_take(sandbox: ProcessSandbox) -> None:
    fits = await ran(sandbox, "import numpy as np\nnp.ones(12_000_000).nbytes", memory=128 << 20)
    not_fits = await ran(sandbox, "import numpy as np\nnp.ones(32_000_000).nbytes", memory=128 << 20)

    assert fits.value == 96_000_000
    assert not_fits.error is not None
    assert not_fits.error.kind == "memory"


async def test_a_program_that_goes_on_draws_the_same_numbers_at_the_same_time(sandbox: ProcessSandbox) -> None:
    code = (
        "import numpy as np, pandas as pd\n"
        "drawn = [*np.random.rand(3).tolist(), np.random.default_rng().normal(), str(pd.Timestamp.now())]\n"
        "drawn += pd.Series(range(99)).sample(5).tolist()\nprint(drawn)\nask('pay')\ndrawn"
    )
    first, state = await paused(sandbox, code)

    result = await sandbox.resume(Program(code, ("ask", "get", "slow")), state, Journaled(first, pay=True))

    assert result.error is None
    assert f"{result.value}\n" == first.heard


async def test_two_programs_draw_different_numbers(sandbox: ProcessSandbox) -> None:
    drawn = [(await ran(sandbox, "import numpy as np\nfloat(np.random.rand())")).value for _ in range(2)]

    assert drawn[0] != drawn[1]


def test_a_program_is_checked_with_the_packages(sandbox: ProcessSandbox) -> None:
    toolkit = Toolkit([], sandbox=sandbox)

    [finding] = toolkit.check("import numpy.linalg, pandas as pd\nimport scipy")

    assert "`scipy` cannot be imported" in finding.message
    assert "numpy" in finding.message
    assert "no network, no packages but numpy, pandas, pyarrow, matplotlib." in toolkit.prompt()


async def test_packages_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text("import os\nFOLDER = os.path.dirname(__file__)\nprice = 7\n")
    with ProcessSandbox(packages=["prices"], packages_from=tmp_path) as sandbox:
        result = await ran(sandbox, "import prices\nprices.price, prices.FOLDER, prices.__file__")

    assert result.value == [7, "/python", "/python/prices.py"]


async def test_public_modules_of_a_package_are_there_though_it_loads_them_late(tmp_path: Path) -> None:
    for name, code in {
        "prices/__init__.py": "",
        "prices/lists.py": "price = 7",
        "prices/broken.py": "1 / 0",
        "prices/_own.py": "price = 8",
        "prices/deep/__init__.py": "",
        "prices/deep/inner.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)

    with ProcessSandbox(packages=["prices"], packages_from=tmp_path) as sandbox:
        found = [
            (await ran(sandbox, f"from prices.{name} import {part}\n1")).value
            for name, part in (("lists", "price"), ("deep", "__name__"), ("broken", "x"), ("_own", "price"))
        ]

    assert found == [1, 1, None, None]


@pytest.mark.parametrize("name", ["PIL", "PIL.Image"])
async def test_pictures_are_made_and_read(name: str) -> None:
    code = """
from PIL import Image, ImageDraw
image = Image.new("RGB", (9, 5), "red")
ImageDraw.Draw(image).text((0, 0), "a")
for form in ("png", "jpg", "gif", "webp"):
    image.save(f"artifacts/a.{form}")
[Image.open(f"artifacts/a.{form}").size for form in ("png", "jpg", "gif", "webp")]
"""
    with ProcessSandbox(packages=[name]) as sandbox:
        result = await ran(sandbox, code)

    assert (result.error, result.value) == (None, [[9, 5]] * 4)
    assert [each.mime_type for each in result.artifacts[:2]] == ["image/png", "image/jpeg"]


async def test_packages_lie_in_another_environment(tmp_path: Path) -> None:
    site = tmp_path / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (site / "prices.py").write_text("price = 8\n")

    with ProcessSandbox(packages=["prices"], packages_from=tmp_path) as sandbox:
        result = await ran(sandbox, "import prices\nprices.price")

    assert result.value == 8


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("", "the package `prices` cannot be loaded: it is not installed. Install it into "),
        ("import wanted\n", "the package `prices` cannot be loaded: it needs `wanted`. Install it into "),
        ("1 / 0\n", "the package `prices` cannot be loaded: ZeroDivisionError: division by zero. Load it in a plain"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named_at_the_start(tmp_path: Path, module: str, says: str) -> None:
    if module:
        (tmp_path / "prices.py").write_text(module)

    with ProcessSandbox(packages=["prices"], packages_from=tmp_path) as sandbox, pytest.raises(SandboxUnavailable) as e:
        _ = sandbox.layers

    assert says in str(e.value)


@pytest.mark.parametrize(
    ("packages", "folder", "error", "says"),
    [
        ("numpy", None, TypeError, r"packages=\['numpy'\]"),
        (
            ["scikit-learn"],
            None,
            ValueError,
            "'scikit-learn' is not the name of a module. Write what a program imports",
        ),
        (["numpy"], "nowhere", ValueError, "packages_from: there is no folder .*nowhere"),
        (["numpy"], "old", ValueError, "is an environment of python3.2, and programs run in python3"),
    ],
)
def test_packages_that_cannot_be_are_refused(
    tmp_path: Path, packages: Any, folder: str | None, error: type[Exception], says: str
) -> None:
    (tmp_path / "old" / "lib" / "python3.2" / "site-packages").mkdir(parents=True)

    with pytest.raises(error, match=says):
        ProcessSandbox(packages=packages, packages_from=None if folder is None else tmp_path / folder)


async def test_a_large_csv_is_read(sandbox: ProcessSandbox) -> None:
    text = "a,b\n" + "1234567,1234567\n" * 400_000  # pandas reads a file of more than 5 MiB in another way
    code = "import pandas as pd\n[len(read('a.csv', sep=',')) for read in (pd.read_csv, pd.read_table)]"

    ended = await sandbox.run(Program(code, files={"a.csv": text.encode()}, limits=SandboxLimits()), TableHost())

    assert (ended.error, ended.value) == (None, [400_000, 400_000])


async def test_columns_of_pandas_that_arrow_has_by_extension_go_into_files_and_back(sandbox: ProcessSandbox) -> None:
    code = """
import io
import pandas as pd
table = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=2), "n": pd.array([1, None], dtype="Int64")})
table["month"] = table.day.dt.to_period("M")
found = []
for form in ("parquet", "feather"):
    kept = io.BytesIO()
    getattr(table, f"to_{form}")(kept)
    kept.seek(0)
    found.append(getattr(pd, f"read_{form}")(kept).equals(table))
found
"""
    ended = await ran(sandbox, code)

    assert (ended.error, ended.value) == (None, [True, True])


async def test_pandas_alone_takes_tables_with_missing_numbers_and_writes_parquet() -> None:
    def orders() -> pd.DataFrame:
        """Return the orders."""
        return pd.DataFrame({"n": pd.array([1, None], dtype="Int64")})

    code = "table = orders()\ntable.to_parquet('artifacts/orders.parquet')\nstr(table['n'].dtype)"
    with ProcessSandbox(packages=["pandas"]) as alone:
        result = await Toolkit([orders], sandbox=alone).execute_async(code)

    assert (result.error, result.return_value) == (None, "Int64")
    assert [artifact.name for artifact in result.artifacts] == ["orders.parquet"]


async def test_what_a_package_would_fetch_is_refused_with_the_way_to_get_it(sandbox: ProcessSandbox) -> None:
    result = await ran(sandbox, "import pandas as pd\npd.read_csv('https://example.org/sales.csv')")

    assert result.error is not None
    assert "A program has no network: have a tool fetch it." in result.error.message
