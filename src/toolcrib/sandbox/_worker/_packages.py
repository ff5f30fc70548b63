"""Packages of the host's that programs may import: loaded, and warmed up, before the worker is sealed."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final

from . import _figures
from ._file_functions import install_in_packages
from ._files import PACKAGE_DATA
from .imports import PACKAGES

_CODE: Final = frozenset(
    [".py", ".pyc", ".pyi", ".so", ".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyx", ".dll"]
)
_NO_DATA: Final = frozenset(["tests", "test", "include", "__pycache__", "sample_data"])
_DATA_SIZE: Final = 4 << 20  # bytes of a file that is kept
_ALL_DATA: Final = 64 << 20

_SAMPLES: Final = {
    "numpy": """
import numpy as np
table = np.arange(12.0).reshape(3, 4)
np.random.default_rng(1).normal(size=3), np.random.rand(2), np.random.choice([1, 2])
np.linalg.inv(np.eye(3) * 2), np.linalg.svd(table), np.linalg.solve(np.eye(3), np.ones(3)), table @ table.T
np.fft.fft(table), np.polynomial.Polynomial.fit([1, 2, 3], [1, 4, 9], 2), np.polyfit([1, 2, 3], [1, 4, 9], 2)
np.percentile(table, 50), np.histogram(table), np.einsum("ij->i", table), np.ma.masked_array([1, 2], [0, 1]).mean()
np.datetime64("2026-01-02") + np.timedelta64(1, "D"), np.array(["a", "b"]), np.char.upper(np.array(["a"]))
np.array2string(table), np.unique([1, 1, 2], return_counts=True), np.testing, np.exceptions, np.typing, np.strings
np.rec, np.emath, np.dtypes, np.ctypeslib
import io
np.loadtxt(io.StringIO("1 2")), np.genfromtxt(io.StringIO("1,2"), delimiter=","), np.savetxt(io.StringIO(), table)
kept = io.BytesIO()
np.savez_compressed(kept, table=table)
kept.seek(0)
print(np.load(kept)["table"])
""",
    "pandas": """
import io, sqlite3
import pandas as pd, pandas.io.formats.excel, pandas.tseries.holiday
text = "day,city,amount\\n2026-01-02,Oslo,1.5\\n2026-01-03,Rome,2\\n2026-01-03,,3"
table = pd.read_csv(io.StringIO(text), parse_dates=["day"])
pd.read_csv(io.StringIO(text), engine="python", sep=None), pd.read_json(io.StringIO('[{"a": 1}]'))
table.groupby("city")["amount"].agg(["sum", "mean"]), table.merge(table, on="city", how="left")
table.pivot_table(index="day", columns="city", values="amount", aggfunc="sum"), pd.crosstab(table.day, table.city)
table.set_index("day").resample("ME").sum(numeric_only=True), table.set_index("day").amount.rolling(2).mean()
table.sort_values("amount").drop_duplicates().fillna("none"), table.describe(), table.query("amount > 1")
table.eval("twice = amount * 2"), pd.concat([table, table]), pd.melt(table, id_vars="city"), table.sample(2)
table.city.str.upper().str.contains("O"), table.day.dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo"), table.dtypes
pd.cut(table.amount, 2), pd.get_dummies(table.city), table.amount.corr(table.amount), pd.Timestamp.now(), table.corr
pd.to_datetime("2026-01-02 10:00"), pd.to_datetime(["02.01.2026"], format="%d.%m.%Y"), pd.date_range("2026", periods=3)
table.to_json(), table.to_html(), table.to_csv(), table.to_string(), table.to_dict("records"), table.to_numpy()
table.apply(lambda row: row.amount, axis=1), table.amount.map(str), pd.Categorical(["a"]), pd.Interval(0, 1)
table.to_records(), table.T, table.stack(), table.explode("city"), table.pivot(columns="city", values="amount")
table.info(buf=io.StringIO()), repr(table), table._repr_html_(), table.memory_usage(), table.nlargest(1, "amount")
kept = sqlite3.connect(":memory:")
table.to_sql("sales", kept)
print(pd.read_sql("select * from sales", kept))
""",
    "pyarrow": """
import io
import pyarrow as pa, pyarrow.compute, pyarrow.csv, pyarrow.ipc
table = pa.table({"a": [1, 2], "b": ["x", None]})
pa.compute.sum(table["a"]), table.group_by("b").aggregate([("a", "sum")]), table.to_pylist(), repr(table)
pa.csv.read_csv(io.BytesIO(b"a,b\\n1,2"))
kept = io.BytesIO()
with pa.ipc.new_stream(kept, table.schema) as stream:
    stream.write_table(table)
pa.ipc.open_stream(kept.getvalue()).read_all()
import pyarrow.parquet
kept = io.BytesIO()
pyarrow.parquet.write_table(table, kept)
print(pyarrow.parquet.read_table(kept))
""",
    "matplotlib": """
import io
import matplotlib.pyplot as plt
for form, style in {"png": "default", "svg": "ggplot", "pdf": "fast", "jpg": "fast", "webp": "fast"}.items():
    plt.style.use(style)
    figure, (first, second) = plt.subplots(2, 1, figsize=(2, 2))
    first.plot([1, 2, 3], [1, 4, 9], "o--", label="a $x^2$")
    first.bar(["a", "b"], [1, 2]), first.scatter([1, 2], [1, 2], c=[1, 2]), first.hist([1, 2, 2]), first.grid()
    first.set_title("title"), first.set_xlabel("x", rotation=45), first.legend(), first.annotate("a", (1, 1))
    second.pie([1, 2], labels=["a", "b"], autopct="%d%%"), second.boxplot([1, 2, 3])
    figure.colorbar(second.imshow([[1, 2], [3, 4]])), figure.suptitle("t", fontweight="bold", style="italic")
    second.contourf([[1, 2], [3, 4]]), first.hexbin([1, 2], [1, 2])
    figure.tight_layout()
    figure.savefig(io.BytesIO(), format=form, bbox_inches="tight" if form == "png" else None)
    plt.close("all")
plt.rcdefaults()
import matplotlib.dates, matplotlib.ticker, matplotlib.animation, matplotlib.backends.backend_agg
plt.figure().add_subplot(projection="3d").plot([1], [1], [1])
plt.yscale("linear")
plt.close("all")
""",
    "PIL": """
import io
from PIL import Image, ImageChops, ImageColor, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps, ImageSequence
from PIL import ImageStat, ImageTransform
Image.init()
image = Image.new("RGB", (9, 9), "red").resize((8, 8)).convert("L")
ImageDraw.Draw(image).text((0, 0), "a", font=ImageFont.load_default())
ImageOps.autocontrast(image), ImageStat.Stat(image).mean, image.filter(ImageFilter.BLUR), image.histogram()
for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PDF"):
    kept = io.BytesIO()
    image.save(kept, form)
    form == "PDF" or Image.open(kept).load()
""",
    "pandas matplotlib": """
import io
import matplotlib.pyplot as plt
import pandas as pd
table = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=4), "amount": [1, 2, 3, 4]})
for kind in ("line", "bar", "hist", "box", "area"):
    table.plot(x="day", y="amount", kind=kind).figure.savefig(io.BytesIO())
table.plot.scatter("amount", "amount"), table.amount.plot.pie(), table.hist()
plt.close("all")
""",
}
"""Programs that use most of what a package loads late, by the packages that they need."""


class PackageMissing(Exception):
    """A package that programs are to import cannot be loaded.

    Attributes:
        remedy: The way to mend it.
    """

    def __init__(self, name: str, why: str, remedy: str) -> None:
        super().__init__(f"the package `{name}` cannot be loaded: {why}")
        self.remedy = remedy


@contextlib.contextmanager
def room_for_caches() -> Generator[None]:
    """Set a folder for the caches of packages while they are loaded, and none of the user's settings."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # nothing can be written here
            os.environ["MPLCONFIGDIR"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolcrib-"))
        yield


def load_packages(names: Iterable[str], folders: Sequence[str]) -> None:
    """Load modules that lie in these folders, and let programs import them and what is in them.

    Raises:
        PackageMissing: No package has that name, or it cannot be loaded.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]  # after the standard library's
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name or name
            why = "it is not installed" if f"{name}.".startswith(f"{missing}.") else f"it needs `{missing}`"
            place = "this environment" if len(folders) != 1 else folders[0]
            remedy = f"Install it into {place}, by the name that its project has, and name it as a program imports it"
            raise PackageMissing(name, why, remedy) from None
        except Exception as error:  # the package's own code
            why = f"{type(error).__name__}: {error}"
            raise PackageMissing(name, why, "Load it in a plain Python first: it has to work there") from error
        PACKAGES.add(name.partition(".")[0])
        if name not in _SAMPLES:
            # its public modules, which many load when they are first used
            for part in pkgutil.iter_modules(getattr(sys.modules[name], "__path__", ()), f"{name}."):
                last = part.name.rpartition(".")[2]
                if not last.startswith("_") and last not in _NO_PARTS:
                    with contextlib.suppress(Exception):  # of the package's own code: what it needs may be missing
                        importlib.import_module(part.name)
    for name in _LATE:
        if all(needed in sys.modules for needed in name.split()):  # pandas loads pyarrow where it is there
            for module in _LATE[name]:
                with contextlib.suppress(ImportError):  # another version has it elsewhere
                    importlib.import_module(module)


_NO_PARTS: Final = frozenset(["conftest", "setup", "test", "testing", "tests"])
_LATE: Final = {
    "pandas": ("pandas.tseries.holiday", "pandas.io.parquet", "pandas.io.feather_format"),
    "pyarrow": ("pyarrow.feather", "pyarrow.json", "pyarrow.parquet"),
    "pandas pyarrow": (
        "pandas.core.arrays.arrow.array",
        "pandas.core.arrays.arrow._arrow_utils",
        "pandas.core.arrays.arrow.extension_types",
    ),
}
"""Modules that packages load late, and that no sample needs, by the packages that they need."""

_SETTINGS: Final = {"pandas.io.parsers.readers": {"_PARALLEL_READ_MIN_BYTES": sys.maxsize}}
"""The settings of modules of packages: pandas maps the file itself into memory where it reads in several threads."""


def samples() -> list[str]:
    """Return the programs that have the loaded packages load the rest of what they need."""
    return [code for needed, code in _SAMPLES.items() if PACKAGES.issuperset(needed.split())]


def settle() -> None:
    """Keep the data of the packages, and have nothing of them refer to files that are not kept; after the samples."""
    room = _ALL_DATA
    for name in sorted(PACKAGES):
        for folder in list(getattr(sys.modules[name], "__path__", ())):
            for path in _data_files(folder):
                size = os.path.getsize(path)
                if size <= min(_DATA_SIZE, room):
                    room -= size
                    with open(path, "rb") as file:
                        PACKAGE_DATA[path] = file.read()
    for name, values in _SETTINGS.items():
        for setting, value in values.items():
            if hasattr(sys.modules.get(name), setting):
                setattr(sys.modules[name], setting, value)
    _figures.prepare()
    install_in_packages()
    for cache in gc.get_objects():
        clear: Any = getattr(cache, "cache_clear", None) if type(cache).__name__ == "_lru_cache_wrapper" else None
        if clear is not None and f"{cache.__module__}".partition(".")[0] in PACKAGES:
            clear()  # it may hold a path, or an open file


def _data_files(folder: str) -> Iterable[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NO_DATA]
        yield from (
            os.path.join(parent, name)
            for name in names
            if os.path.splitext(name)[1] not in _CODE and ".so." not in name
        )
