"""Tables between tools and programs: as they are where the program can read them, as rows elsewhere."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from toolcrib.code import ExecutionResult, PausedProgram, Toolkit
from toolcrib.sandbox import MontySandbox, ProcessSandbox, SandboxLimits, UnsafeInlineSandbox
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")

FRAME = pd.DataFrame({"n": [1, 2, 3], "x": [0.5, None, 1.5], "s": ["a", "b", None], "at": [datetime(2026, 1, 2)] * 3})
ROWS = [
    {"n": 1, "x": 0.5, "s": "a", "at": "2026-01-02T00:00:00"},
    {"n": 2, "x": None, "s": "b", "at": "2026-01-02T00:00:00"},
    {"n": 3, "x": 1.5, "s": None, "at": "2026-01-02T00:00:00"},
]
KEY = "a key of more than sixteen bytes"
made: list[int] = []


@ez_tool
async def sales() -> pd.DataFrame:
    """Return sales."""
    made.append(1)
    return FRAME


@ez_tool
async def sales_by_city() -> dict[str, Any]:
    """Return sales."""
    return {"note": "x", "cities": [{"city": "Oslo", "sales": pa.Table.from_pandas(FRAME)}]}


@ez_tool
async def parts() -> AsyncIterator[pa.Table]:
    """Return tables, one by one."""
    yield pa.table({"a": [1]})
    yield pa.table({"a": [2]})


@ez_tool
async def big(rows: int) -> pa.Table:
    """Return many rows."""
    return pa.table({"a": range(rows), "b": range(rows)})


@ez_tool
async def keep(table: pd.DataFrame, note: str = "") -> str:
    """Keep a table."""
    return f"{type(table).__name__} {table.shape} {table['n'].sum()}"


@ez_tool(requires_approval=True)
async def send(text: str) -> str:
    """Send a text."""
    return text


TOOLS = [sales, sales_by_city, parts, big, keep, send]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(packages=["numpy", "pandas", "pyarrow"]) as made:
        yield made


@pytest.fixture(scope="module")
def arrow_sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(packages=["pyarrow"]) as made:
        yield made


def ran(sandbox: Any, code: str, **limits: int) -> ExecutionResult:
    result = Toolkit(TOOLS, sandbox=sandbox, limits=SandboxLimits(**limits)).execute(code)
    assert result.success, result.error
    return result


def test_a_table_arrives_as_a_data_frame(sandbox: ProcessSandbox) -> None:
    result = ran(sandbox, "t = sales()\nprint(type(t).__module__, t['at'].dt.year.tolist())\nt['x'].sum()")

    assert (result.output, result.return_value) == ("pandas [2026, 2026, 2026]\n", 2.0)
    assert result.tool_calls[0]["result"]["rows"] == 3
    assert result.tool_calls[0]["result"]["head"][0] == [1, 0.5, "a", "2026-01-02 00:00:00"]


def test_names_of_rows_and_categories_stay(sandbox: ProcessSandbox) -> None:
    @ez_tool
    async def indexed() -> pd.DataFrame:
        return FRAME.astype({"s": "category"}).set_index("n")

    result = Toolkit([indexed], sandbox=sandbox).execute("t = indexed()\n[t.loc[2, 's'], str(t['s'].dtype)]")

    assert result.return_value == ["b", "category"]


def test_a_table_arrives_as_one_of_pyarrow_where_there_is_no_pandas(arrow_sandbox: ProcessSandbox) -> None:
    result = ran(arrow_sandbox, "t = sales()\n[type(t).__name__, t.num_rows, t['n'].to_pylist()]")

    assert result.return_value == ["Table", 3, [1, 2, 3]]


def test_the_name_of_rows_is_a_column_of_a_table_of_pyarrow(arrow_sandbox: ProcessSandbox) -> None:
    @ez_tool
    async def counted() -> pd.DataFrame:
        return pd.DataFrame({"a": ["x", "y"]}, index=pd.RangeIndex(2, name="n"))

    result = Toolkit([counted], sandbox=arrow_sandbox).execute("counted().to_pydict()")

    assert result.return_value == {"a": ["x", "y"], "n": [0, 1]}


def test_tables_in_a_value_arrive_where_they_were(sandbox: ProcessSandbox) -> None:
    result = ran(sandbox, "v = sales_by_city()\n[v['note'], v['cities'][0]['city'], v['cities'][0]['sales'].shape]")

    assert result.return_value == ["x", "Oslo", [3, 4]]


@pytest.mark.parametrize("make", [ProcessSandbox, MontySandbox, UnsafeInlineSandbox])
def test_elsewhere_a_table_arrives_as_rows(make: Any) -> None:
    sandbox = make()
    try:
        assert ran(sandbox, "sales()").return_value == ROWS
    finally:
        sandbox.close()


def test_a_table_with_too_many_rows_is_not_made_into_rows() -> None:
    with ProcessSandbox() as sandbox:
        result = Toolkit(TOOLS, sandbox=sandbox).execute("big(1_000_001)")

    assert "a table of 1,000,001 rows and 2 columns" in (result.error or "")
    assert 'packages=["pandas", "pyarrow"]' in (result.error or "")


def test_values_of_a_stream_that_are_tables_arrive_as_rows(sandbox: ProcessSandbox) -> None:
    assert ran(sandbox, "list(parts())").return_value == [[{"a": 1}], [{"a": 2}]]


def test_a_table_that_is_too_large_is_an_error_that_names_the_limit(sandbox: ProcessSandbox) -> None:
    code = "try:\n    big(1_000)\nexcept ValueError as error:\n    print(error)"

    said = ran(sandbox, code, bytes_in=10_000).output

    assert said.startswith("`big` returned a table of 16")
    assert "10000 is the most a program can take in at once (SandboxLimits.bytes_in)" in said


def test_tables_that_are_too_large_together_are_an_error(sandbox: ProcessSandbox) -> None:
    @ez_tool
    async def two() -> list[pa.Table]:
        return [pa.table({"a": range(1_000)})] * 2

    result = Toolkit([two], sandbox=sandbox, limits=SandboxLimits(bytes_in=12_000)).execute("two()")

    assert "`two` returned tables of 16" in (result.error or "")


def test_a_table_for_which_the_program_has_no_memory_ends_it_alone(sandbox: ProcessSandbox) -> None:
    toolkit = Toolkit(TOOLS, sandbox=sandbox, limits=SandboxLimits(memory=64 << 20))
    code = "try:\n    big(6_000_000)\nexcept MemoryError:\n    print('none')\nbig(2).shape"

    caught, ended = toolkit.execute(code), toolkit.execute("big(6_000_000)")

    assert (caught.output, caught.return_value) == ("none\n", [2, 2])
    assert "more than the 64 MB of memory" in (ended.error or "")


def test_a_program_leaves_tables(sandbox: ProcessSandbox) -> None:
    result = ran(sandbox, "t = sales()\n{'all': t, 'few': [t[t['n'] > 1][['n', 's']]]}")

    assert result.return_value["all"].to_dict() == FRAME.to_dict() or result.return_value["all"].equals(FRAME)
    assert result.return_value["few"][0]["n"].tolist() == [2, 3]


def test_a_program_leaves_tables_and_artifacts(sandbox: ProcessSandbox) -> None:
    result = ran(sandbox, "with open('artifacts/a.txt', 'w') as file:\n    file.write('text')\nsales()")

    assert result.return_value["n"].tolist() == [1, 2, 3]
    assert [bytes(media.data) for media in result.artifacts] == [b"text"]


def test_a_program_leaves_a_table_of_pyarrow(arrow_sandbox: ProcessSandbox) -> None:
    value = ran(arrow_sandbox, "sales().slice(1).select(['n', 's'])").return_value

    assert isinstance(value, pa.Table)
    assert value.to_pydict() == {"n": [2, 3], "s": ["b", None]}


def test_a_table_that_is_too_large_does_not_leave(sandbox: ProcessSandbox) -> None:
    result = Toolkit(TOOLS, sandbox=sandbox, limits=SandboxLimits(bytes_out=10_000)).execute("big(1_000)")

    assert "its tables take 16000 bytes, and 10000 is the most (SandboxLimits.bytes_out)" in (result.error or "")


def test_a_table_that_unfolds_does_not_leave(sandbox: ProcessSandbox) -> None:
    code = "import pyarrow as pa\npa.table({'a': pa.array([True, None] * 2_000)})"

    result = Toolkit(TOOLS, sandbox=sandbox, limits=SandboxLimits(bytes_out=50_000)).execute(code)

    assert "its tables take 65000 bytes, and 50000 is the most (SandboxLimits.bytes_out)" in (result.error or "")


def test_a_tool_that_takes_a_table_is_given_one(sandbox: ProcessSandbox) -> None:
    result = ran(sandbox, "[keep(sales()), keep(sales().to_dict('records')[:1], note='x')]")

    assert result.return_value == ["DataFrame (3, 4) 6", "DataFrame (1, 4) 1"]
    assert result.tool_calls[1]["arguments"] == {"table": ROWS}


def test_a_table_that_is_too_large_as_an_argument_is_an_error_that_names_it(sandbox: ProcessSandbox) -> None:
    code = "try:\n    keep(table=big(400_000))\nexcept ValueError as error:\n    print(error)"

    assert ran(sandbox, code).output == (
        "the argument `table` of `keep` cannot be passed to it: it is larger than 1000000 characters as JSON "
        "(SandboxLimits.value_size)\n"
    )


def test_a_paused_program_gets_the_same_table_again(sandbox: ProcessSandbox) -> None:
    made.clear()
    toolkit = Toolkit(TOOLS, sandbox=sandbox)
    paused = toolkit.execute("t = sales()\nsend('x')\n[type(t).__name__, t['n'].tolist(), t['at'].dt.day.tolist()]")
    assert paused.paused is not None
    kept = PausedProgram.from_bytes(paused.paused.to_bytes(KEY), KEY)

    result = toolkit.resume(kept, grants=[request.grant("ada") for request in paused.suspended])

    assert result.return_value == ["DataFrame", [1, 2, 3], [2, 2, 2]]
    assert made == [1]


@ez_tool
async def shape(table: pd.DataFrame) -> str:
    """Describe a table."""
    return f"{table.dtypes.astype(str).to_dict()} {table.to_dict('list')}"


@ez_tool
async def count(rows: list[dict[str, Any]]) -> int:
    """Count rows."""
    return len(rows)


@pytest.mark.parametrize(
    ("made", "came"),
    [
        ("{'n': [1.5, float('inf')]}", "{'n': 'float64'} {'n': [1.5, inf]}"),
        ("{'n': pd.array([2**53 + 1, None], dtype='Int64')}", "{'n': 'Int64'} {'n': [9007199254740993, <NA>]}"),
        ("[[1, 2]], columns=['a', 'a']", "{'a': 'int64', 'a.1': 'int64'} {'a': [1], 'a.1': [2]}"),
        ("{'city': ['a'], 'amount': [1]}).query('amount > 5'", "{'city': 'object', 'amount': 'object'} {'city': [], "),
        ("{'n': pd.interval_range(0, 1)}", "{'n': 'str'} {'n': ['(0, 1]']}"),
    ],
)
def test_a_tool_gets_what_was_in_the_table(sandbox: ProcessSandbox, made: str, came: str) -> None:
    result = Toolkit([shape], sandbox=sandbox).execute(f"import pandas as pd\nshape(pd.DataFrame({made}))")

    assert result.error is None
    assert result.return_value.replace("None", "<NA>").startswith(came)


def test_a_table_without_rows_is_no_row_of_a_tool_that_takes_a_list(sandbox: ProcessSandbox) -> None:
    code = "import pandas as pd\n[count(pd.DataFrame({'a': []})), count(rows=[{'$columns': 1, 'b': 2}])]"

    assert Toolkit([count], sandbox=sandbox).execute(code).return_value == [0, 1]


def test_a_column_that_cannot_be_passed_is_named_with_the_mend(sandbox: ProcessSandbox) -> None:
    code = "import pandas as pd\ntable = pd.DataFrame({'m': ['a', 'b']}).describe()\n"
    toolkit = Toolkit([shape], sandbox=sandbox)

    errors = [toolkit.execute(code + last).error or "" for last in ("table", "shape(table)")]

    for error in errors:
        assert "the column `m` of a table has values of type int, int64, str, which cannot leave" in error
        assert "table['m'] = table['m'].astype(str)" in error
    assert toolkit.execute(f"{code}table['m'] = table['m'].astype(str)\ntable").return_value["m"].tolist()[2] == "a"


@pytest.mark.parametrize("make", [MontySandbox, ProcessSandbox, UnsafeInlineSandbox])
def test_numbers_that_json_does_not_have_arrive_as_numbers(make: Any) -> None:
    sandbox = make()
    try:
        result = Toolkit([], sandbox=sandbox).execute("[float('nan'), float('inf'), {'a': -float('inf')}]")
    finally:
        sandbox.close()

    assert repr(result.return_value) == "[nan, inf, {'a': -inf}]"


@ez_tool
async def categories() -> pd.DataFrame:
    """Return intervals, and integers of which one is missing."""
    return pd.DataFrame({"n": pd.interval_range(0, 2)}, index=pd.interval_range(1, 3))


@ez_tool
async def missing() -> pa.Table:
    """Return integers and booleans of which one is missing."""
    return pa.table({"n": [1, None], "b": [None, True]})


def test_intervals_arrive_as_texts_and_integers_as_integers(sandbox: ProcessSandbox) -> None:
    code = (
        "t = categories()\nm = missing()\n[t['n'].tolist(), t.index.tolist(), *map(str, m.dtypes), m['n'].tolist()[0]]"
    )

    result = Toolkit([categories, missing], sandbox=sandbox).execute(code)

    assert result.return_value == [["(0, 1]", "(1, 2]"], ["(1, 2]", "(2, 3]"], "Int64", "boolean", 1]


def test_the_prompt_says_what_a_table_is_there(sandbox: ProcessSandbox, arrow_sandbox: ProcessSandbox) -> None:
    with MontySandbox() as plain:
        said = {
            table: Toolkit([shape, sales, parts], sandbox=made).prompt()
            for table, made in (("DataFrame", sandbox), ("pyarrow.Table", arrow_sandbox), ("list[dict]", plain))
        }

    for table, prompt in said.items():
        assert f"def shape(table: {table}) -> str:" in prompt
        assert f"def sales() -> {table}:" in prompt
        assert "def parts() -> Iterator[list[dict]]:" in prompt or "def parts() -> list:" in prompt
        assert (f"each is a `{table}`, as a result and as an argument." in prompt) is (table != "list[dict]")
    assert "Tables are" not in Toolkit([count], sandbox=sandbox).prompt()


@ez_tool
async def nullable() -> pd.DataFrame:
    """Return numbers of which one is missing, and months."""
    months = pd.period_range("2026-01", periods=2, freq="M")
    return pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "month": months})


@ez_tool
async def huge() -> pd.DataFrame:
    """Return numbers of more than 64 bits."""
    return pd.DataFrame({"n": [2**70, 1]})


def test_columns_of_pandas_own_kinds_arrive(sandbox: ProcessSandbox) -> None:
    ended = Toolkit([nullable], sandbox=sandbox).execute("t = nullable()\n[str(kind) for kind in t.dtypes]")

    assert (ended.error, ended.return_value) == (None, ["Int64", "period[M]"])


def test_a_table_that_arrow_cannot_hold_is_an_error_that_the_program_can_catch(sandbox: ProcessSandbox) -> None:
    code = "try:\n    huge()\nexcept Exception as error:\n    print(error)\n1"
    with Toolkit([huge], sandbox=sandbox).session() as session:
        ended = session.execute(code)

        assert ended.return_value == 1
        assert "`huge` returned a table that Arrow cannot hold (OverflowError" in ended.output
        assert session.execute("2").return_value == 2
