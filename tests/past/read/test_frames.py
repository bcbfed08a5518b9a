"""Tables of runs: how they are read, what is inferred, and what is refused."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import INF, NAN
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from studies import answer_of, past_study, start_python

from metatpe import Task
from metatpe.past.read.frames import Column, _split
from metatpe.past.read.infer import distribution, parse_parameter
from metatpe.past.read.suspects import suspects
from metatpe.space import shown

CHOICES = CategoricalDistribution
STEPPED = FloatDistribution(0, 1, step=0.25)
CSV = """\
run,lr,depth,act,bias,error,time
a,0.1,2,relu,True,3.0,10
b,0.001,4,tanh,false,1.5,20
c,1e-5,,relu,TRUE,,30
d,0.02,8,gelu,,2.5,40
"""


def csv_task(path: Path, text: str, **arguments: Any) -> Task:
    path = path / "runs.csv"
    path.write_text(text, "utf-8")
    return Task.from_csv(path, **{"objectives": "error", **arguments})


def inferred(*values: Any, given: Any = None) -> BaseDistribution:
    """Return the distribution of a column with these values."""
    rows = {"x": list(values), "error": list(range(len(values)))}
    task = Task.from_dataframe(rows, objectives="error", params={"x": given})
    return task.space.distributions["x"]


# What a table says


def test_a_csv_file_becomes_a_task(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = csv_task(
        tmp_path,
        CSV,
        objectives=["error", "time"],
        directions=["minimize", "maximize"],
        params=["lr", "depth", "act", "bias"],
    )
    assert (task.name, task.objective_names) == ("runs", ("error", "time"))
    assert csv_task(tmp_path, CSV, name="other").name == "other"
    np.testing.assert_array_equal(task.losses, [[3.0, -10.0], [1.5, -20.0], [2.5, -40.0]])
    assert task.space.distributions == {
        "lr": FloatDistribution(0.001, 0.1),
        "depth": IntDistribution(2, 8),
        "act": CHOICES(("gelu", "relu", "tanh")),
        "bias": CHOICES((False, True)),
    }
    assert task.configurations(range(3)) == [
        {"lr": 0.1, "depth": 2, "act": "relu", "bias": True},
        {"lr": 0.001, "depth": 4, "act": "tanh", "bias": False},
        {"lr": 0.02, "depth": 8, "act": "gelu"},
    ]
    assert "1 of 4 rows have no result and are left out" in caplog.text


def test_what_was_inferred_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="metatpe"):
        task = csv_task(tmp_path, CSV)
    assert "runs.csv was read as" in caplog.text
    assert "depth: int 2 to 8" in caplog.text
    assert shown(task.space.distributions["lr"]) in task.describe()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_other_programs_are_read(separator: str, newline: str, tmp_path: Path) -> None:
    text = "\ufeff" + 'x;"a ""name""";error\n0.5;"multi\nline";1\n\n0.7;ü;2\n'
    text = text.replace(";", separator).replace("\n", newline)
    path = tmp_path / "runs.csv"
    path.write_bytes(text.encode())
    task = Task.from_csv(path, objectives="error")
    assert task.configurations([0, 1]) == [
        {"x": 0.5, 'a "name"': f"multi{newline}line"},
        {"x": 0.7, 'a "name"': "ü"},
    ]


def test_an_optuna_export_is_understood(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    study = past_study(n=30)
    study.tell(study.ask({"x": FloatDistribution(0, 1)}), state=optuna.trial.TrialState.FAIL)
    path = tmp_path / "trials.csv"
    study.trials_dataframe().to_csv(path)
    task = Task.from_csv(path, objectives=["values_0", "values_1"])
    own = Task.from_study(study)
    np.testing.assert_array_equal(task.losses, own.losses)
    assert task.configurations(range(30)) == own.configurations(range(30))
    assert task.space.names == own.space.names
    assert Task.from_dataframe(study.trials_dataframe(), objectives="values_0").name == "table"


def test_names_of_runs_and_dates_are_no_parameters(caplog: pytest.LogCaptureFixture) -> None:
    rows = {"run": [f"r{i}" for i in range(20)], "x": list(range(20)), "error": [0.0] * 20}
    task = Task.from_dataframe(rows, objectives="error")
    assert task.space.names == ("x",)
    assert "different in every row and left out: run" in caplog.text


@pytest.mark.parametrize(("n", "names"), [(24, ("run", "x")), (23, ("x",))])
def test_more_texts_than_half_of_the_rows_are_names(n: int, names: tuple[str, ...]) -> None:
    rows = {"run": [f"r{i % 12}" for i in range(n)], "x": [0.5] * n, "error": range(n)}
    assert Task.from_dataframe(rows, objectives="error").space.names == names


def test_a_state_alone_or_a_prefix_alone_is_no_export_of_optuna() -> None:
    for other in ("state", "params_x"):
        rows = {other: ["FAIL", "COMPLETE"] * 3, "lr": [0.5, 0.1] * 3, "error": range(6)}
        task = Task.from_dataframe(rows, objectives="error")
        assert task.space.names == (other.removeprefix("params_"), "lr")
        assert len(task) == 6


@pytest.mark.parametrize(("n", "names"), [(10, ("run", "x")), (11, ("x",))])
def test_ten_different_texts_may_be_choices(n: int, names: tuple[str, ...]) -> None:
    rows = {"run": [f"r{i}" for i in range(n)], "x": [0.5, 0.1] * 8, "error": [0.0, 1.0] * 8}
    rows = {name: column[:n] for name, column in rows.items()}
    assert Task.from_dataframe(rows, objectives="error").space.names == names


def test_a_column_without_a_value_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    rows = {"x": [1, 2], "y": [NAN, NAN], "z": [None, "a"], "error": [1.0, NAN]}
    assert Task.from_dataframe(rows, objectives="error").space.names == ("x",)
    assert "without a value and left out: y, z" in caplog.text


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((1, 2, 9), IntDistribution(1, 9)),
        ((1.0, 2.0, None), IntDistribution(1, 2)),
        ((1, 2.5, 9), FloatDistribution(1, 9)),
        ((1, 10, 1000), IntDistribution(1, 1000, log=True)),
        ((1, 100, 1000), IntDistribution(1, 1000, log=True)),  # the median is a tenth
        ((1, 101, 1000), IntDistribution(1, 1000)),  # and a little more
        ((1e-5, 1e-3, 1e-1), FloatDistribution(1e-5, 1e-1, log=True)),
        ((1e-5, 0.4, 0.6, 1.0), FloatDistribution(1e-5, 1.0)),
        ((0.0, 1e-3, 1e-1), FloatDistribution(0, 0.1)),
        ((1e-3, 1e-2, 0.9), FloatDistribution(1e-3, 0.9)),
        ((-3, -3), IntDistribution(-3, -3)),
        ((0.9, 0.9), FloatDistribution(0.9, 0.9)),
        (("b", "a", "b"), CHOICES(("a", "b"))),
        (("b", " a", "a ", "b"), CHOICES(("a", "b"))),
        ((True, False), CHOICES((False, True))),
        (("True", "b"), CHOICES((True, "b"))),
        (("1e-3", " 2 ", "NA"), FloatDistribution(1e-3, 2, log=False)),
    ],
    ids=str,
)
def test_kind_and_range_are_inferred(values: tuple[Any, ...], found: BaseDistribution) -> None:
    assert inferred(*values) == found


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "NAN", "NA", " NA ", "N/A", "null"])
def test_a_cell_may_be_missing_in_many_ways_among_numbers_and_among_texts(
    cell: str, tmp_path: Path
) -> None:
    task = csv_task(tmp_path, f"x,act,error\n0.5,relu,1\n{cell},{cell},2\n0.7,tanh,3\n")
    assert task.space.distributions["act"] == CHOICES(("relu", "tanh"))
    assert task.space.distributions["x"] == FloatDistribution(0.5, 0.7)
    assert task.configuration(1) == {}


@pytest.mark.parametrize(
    ("given", "values", "found"),
    [
        ("float", (1, 2), FloatDistribution(1, 2)),
        ("log", (1, 2), FloatDistribution(1, 2, log=True)),
        ("int", (1, 1000), IntDistribution(1, 1000)),
        ("logint", (1, 2), IntDistribution(1, 2, log=True)),
        ("choice", (32, 16, 32), CHOICES((16, 32))),
        ("choice", (9, "auto", 10), CHOICES((9, 10, "auto"))),
        ("choice", tuple(range(1000)), CHOICES(range(1000))),
        (STEPPED, (0.25 + 2e-9,), STEPPED),  # up to eight digits
        ("choice", (0.5, "auto", 16), CHOICES((0.5, 16, "auto"))),
        (IntDistribution(0, 9), (1, 2), IntDistribution(0, 9)),
        (CHOICES((64, 32, "x")), ("32", 64), CHOICES((64, 32, "x"))),
        (CHOICES((True, False)), ("true",), CHOICES((True, False))),
    ],
    ids=str,
)
def test_kind_and_range_can_be_given(
    given: Any, values: tuple[Any, ...], found: BaseDistribution
) -> None:
    assert inferred(*values, given=given) == found


def test_of_given_choices_that_are_written_alike_the_first_is_taken() -> None:
    rows, alike = {"x": [16, 32], "error": [0.1, 0.2]}, CHOICES((16, "16", 32))
    task = Task.from_dataframe(rows, objectives="error", params={"x": alike})
    assert task.configurations([0, 1]) == [{"x": 16}, {"x": 32}]


def test_given_choices_keep_their_order() -> None:
    rows = {"c": ["b", "a", None], "error": [0, 1, 2]}
    task = Task.from_dataframe(rows, objectives="error", params={"c": CHOICES(("b", "z", "a"))})
    np.testing.assert_array_equal(task.numbers, [[0.0], [2.0], [NAN]])
    assert task.configurations(range(3)) == [{"c": "b"}, {"c": "a"}, {}]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_read(library: str) -> None:
    frames = pytest.importorskip(library)
    columns = {
        "x": [0.5, None, 1.5],
        "n": [1, 2, 3],
        "c": ["a", None, "b"],
        "b": [True, False, True],
        "error": [3.0, 2.0, INF],
    }
    task = Task.from_dataframe(frames.DataFrame(columns), objectives="error", name="t")
    assert task.configurations(range(3)) == [
        {"x": 0.5, "n": 1, "c": "a", "b": True},
        {"n": 2, "b": False},
        {"x": 1.5, "n": 3, "c": "b", "b": True},
    ]
    assert task.losses[:, 0].tolist() == [3.0, 2.0, INF]


def test_every_kind_of_column_of_pandas_is_read() -> None:
    pd = pytest.importorskip("pandas")
    df = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "text": pd.array(["a", None, "b"], dtype="string"),
            "kind": pd.Categorical(["u", "v", None]),
            "any": np.array([pd.NA, pd.NaT, "w"], dtype=object),
            "truth": pd.array([True, None, False], dtype="boolean"),
            "error": pd.array([1, 2, 3], dtype="Float64"),
        }
    )
    task = Task.from_dataframe(df, objectives="error")
    assert task.configurations(range(3)) == [
        {"whole": 1, "text": "a", "kind": "u", "truth": True},
        {"kind": "v"},
        {"any": "w", "whole": 3, "text": "b", "truth": False},
    ]


# What is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"runs\.csv is empty"),
        ("x,error\n", r"runs\.csv has a header but no rows"),
        (",\n1,2\n", r"runs\.csv is empty; its first line must name the columns"),
        ("x,x,error\n1,2,3\n", r"has more than one column 'x'; rename"),
        ("e,e,d,d,c,c,b,b,a,a\n", r"has more than one column 'a'; rename"),
        ("x,err\n1,2\n", r"runs\.csv has no column 'error'; similar names are \['err'\]"),
        ("x,error\n1,2\n3\n", r"row 2 has 1 cells, but the header names 2"),
        ('x,error\n\n1,2\n"3"\n', r"row 2 has 1 cells, but the header names 2"),
        ("x,error\n1,2,3\n", r"row 1 has 3 cells, but the header names 2"),
        ("x,error\n1,2\n,\n3,oops\n", r"the objective 'error' must be a number.*row 3 has 'oops'"),
        ("x,error\n0.1,2\nabc,3\n", r"'x' has numbers, but row 2 has 'abc'; correct it"),
        ("x,error\nabc,2\n0.1,3\n", r"'x' has numbers, but row 1 has 'abc'"),
        ("x,error\r\n1,oops\r\n", r"row 1 has 'oops'\."),
        ("x,error\n1,\n2,nan\n", r"no row has a value of 'error'"),
        ("error\n1\n", r"no column that could be a parameter"),
        ("x,error\ninf,1\n2,1\n", r"'x' must have finite values"),
        ("x,error\n-inf,1\n2,1\n", r"'x' must have finite values"),
        (
            "errora,errorb,errorc,errord\n1,2,3,4\n",
            r"similar names are \['error.'(, 'error.'){2}\]\.",
        ),
        ("a,b,c,d,e,f\n1,2,3,4,5,6\n", r"it begins with \['a', 'b', 'c', 'd', 'e'\]\."),
        (
            'x,error\n1,2\n"3,4\n5,6\n',
            r'unexpected end of data; a " is missing, or there',
        ),
        (
            'x,error\n1,2\n"3,4\n5,6\n7",8\n',
            r'a cell of row 2 spans 3 lines.*a " is',
        ),
        ('x,error\n1,2\n"3"5,4\n', r'expected after.*a " is missing, or there is one too many'),
    ],
    ids=repr,
)
def test_a_bad_file_is_refused_in_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        csv_task(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,error\n\xff\xfe,1\n", r"runs\.csv is not a CSV file in UTF-8"),
        (b'x,error\n"1,2\n' + b"3,4\n" * 90000, r"runs\.csv is not a CSV file: field larger"),
    ],
    ids=["latin", "open quote"],
)
def test_a_file_that_is_no_csv_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Task.from_csv(path, objectives="error")


@pytest.mark.parametrize(
    ("given", "values", "message"),
    [
        ("log", (0.0, 1.0), "a log scale needs positive values, but there is 0"),
        ("logint", (0, 1), "starts at 1, not at 0"),
        ("int", (0.5, 2.0), "not a range of whole numbers"),
        ("int", (0, 0.5, 2), r"'x' has 0\.5, which is not in IntDistribution"),
        ("bool", (0, 1), "'bool' is not a parameter type; the types are float, log, int"),
        ("float", ("a", "b"), "'x' has numbers, but row 1 has 'a'"),
        (FloatDistribution(0, 1), (0.5, 3.0), r"'x' has 3, which is not in FloatDistribution"),
        (STEPPED, (0.3,), r"'x' has 0\.3, which is not in"),
        (STEPPED, (0.25 + 5e-9,), r"'x' has 0\.25, which is not in"),
        (CHOICES("ab"), ("a", "c"), r"'x' has 'c', which is not in Categ"),
        ("choice", tuple(range(1500)), "more than 1000 values"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_what_was_given_are_refused(
    given: Any, values: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        inferred(*values, given=given)


@pytest.mark.parametrize(
    ("directions", "message"),
    [("up", "not 'up'"), (["minimize"] * 2, "2 directions for 1 objective"), ([], "0 direct")],
)
def test_bad_directions_are_refused(directions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task.from_dataframe({"x": [1], "e": [1]}, objectives="e", directions=directions)


def test_a_stray_quote_does_not_swallow_rows(tmp_path: Path) -> None:
    rows = [f"{i},relu,{i / 7}" for i in range(200)]
    rows[20], rows[180] = '20,"relu,0.1', '180,relu",0.2'
    with pytest.raises(ValueError, match=r"a cell of row 21 spans 161 lines"):
        csv_task(tmp_path, "\n".join(["x,act,error", *rows]))


def test_a_cell_of_several_lines_is_read(tmp_path: Path) -> None:
    task = csv_task(tmp_path, 'x,note,error\n1,"two\nlines, here\nend",2\n3,"one",4\n')
    assert task.numbers[:, 0].tolist() == [1.0, 3.0]


def test_a_line_of_a_cell_looks_like_a_row_only_with_its_commas_and_between_other_lines(
    tmp_path: Path,
) -> None:
    note = "a, b, c\nwith, many, more, of, them\na, b, c"
    task = csv_task(tmp_path, f'x,note,error\n1,"{note}",2\n3,"one",4\n')
    assert task.configuration(0) == {"note": note, "x": 1}


def test_rows_are_counted_without_blank_lines_however_long_a_file_is(tmp_path: Path) -> None:
    rows = [*["1,2"] * 1700, *[""] * 700, *["1,2"] * 700, "3"]
    with pytest.raises(ValueError, match="row 2401 has 1 cells"):
        csv_task(tmp_path, "\n".join(["x,error", *rows]))


def test_of_separators_that_are_equally_frequent_it_is_the_comma(tmp_path: Path) -> None:
    task = csv_task(tmp_path, "x;metre,error\n1,2\n3,4\n")
    assert task.space.names == ("x;metre",)


def test_columns_that_look_like_identifiers_are_said(caplog: pytest.LogCaptureFixture) -> None:
    n = 12
    rows = {
        "run_id": [7, 3, 9, 1] * 3,
        "seed": [0, 1, 2] * 4,
        "date": ["2026-01-01", "2026-01-02"] * 6,
        "when": [1.7e9 + 3600 * i for i in range(n)],
        "count": list(range(n)),
        "lr": [0.1, 0.2, 0.3] * 4,
        "layers": [1, 2, 3, 4] * 3,
        "error": list(range(n)),
    }
    Task.from_dataframe(rows, objectives="error")
    for name, what in {
        "run_id": "an identifier",
        "seed": "a seed",
        "date": "a timestamp",
        "when": "a timestamp",
        "count": "an identifier",
    }.items():
        assert f"{name!r} looks like {what}" in caplog.text
    assert "'lr' looks" not in caplog.text
    assert "'layers' looks" not in caplog.text
    caplog.clear()
    Task.from_dataframe(rows, objectives="error", params=["seed", "lr"])
    assert "looks like" not in caplog.text


def numbers(*cells: float) -> Column:
    return Column(np.array(cells, dtype=float))


def texts(*choices: str) -> Column:
    return Column(np.arange(len(choices), dtype=float), choices)


SECOND = np.arange(5) * 7.0


@pytest.mark.parametrize(
    ("name", "column", "what"),
    [
        ("n", numbers(3, 4, 5, 6, 7), "an identifier"),
        ("n", numbers(3, 4, NAN, 5, 6, 7), "an identifier"),
        ("n", numbers(3, 4, 5, 6), None),  # which may follow each other by chance
        ("n", numbers(3, 4, 5, 6, 8), None),
        ("n", numbers(3, 4, 5, 6, 6), None),
        ("n", texts("a", "b", "c", "d", "e"), None),
        ("n", numbers(*(9e8 + SECOND)), "a timestamp"),
        ("n", numbers(*(2.5e9 - SECOND)), "a timestamp"),
        ("n", numbers(*(9e11 + SECOND)), "a timestamp"),
        ("n", numbers(*(2.5e12 - SECOND)), "a timestamp"),
        ("n", numbers(*(9e8 + SECOND[:4])), None),
        ("n", numbers(*(9e8 - 1.0 + SECOND)), None),
        ("n", numbers(*(2.5e9 + 1.0 - SECOND)), None),
        ("n", texts("2026-01-01", "2026-1-2 12:30"), "a timestamp"),
        ("n", texts("2026-01-01", "soon"), None),
        ("number", numbers(3, 1), "an identifier"),
        ("params_number", numbers(3, 1), "an identifier"),
        ("random_state", numbers(3, 1), "a seed"),
        ("started_at", numbers(3, 1), "a timestamp"),
    ],
    ids=str,
)
def test_names_and_values_tell_what_is_probably_no_parameter(
    name: str, column: Column, what: str | None
) -> None:
    assert suspects({name: column}, [name]) == ({name: what} if what else {})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_resolution_look_like_timestamps(
    unit: str, caplog: pytest.LogCaptureFixture
) -> None:
    pandas = pytest.importorskip("pandas")
    when = pandas.date_range("2026-01-01", periods=6, freq="37min").as_unit(unit).repeat(2)
    table = pandas.DataFrame({"lr": [0.1, 0.2, 0.3] * 4, "when": when, "error": range(12)})
    Task.from_dataframe(table, objectives="error")
    assert "'when' looks like a timestamp" in caplog.text
    assert "'lr' looks" not in caplog.text


def test_columns_may_be_called_by_numbers() -> None:
    task = Task.from_dataframe({0: [0.1, 0.2], 1: [1.0, 2.0]}, objectives="1")
    assert task.space.names == ("0",)


def test_columns_of_several_levels_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({("params", "x"): [0.1], ("values", "error"): [1.0]})
    with pytest.raises(ValueError, match=r"several levels, such as \('params', 'x'\); join them"):
        Task.from_dataframe(table, objectives="error")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"x": [1, 2, 3], "error": [1, 2]}, r"'x' has 3 and 'error' has 2"),
        ({"x": [[1, 2], [3]], "error": [1, 2]}, r"'x' must have one value per row"),
        ({"x": [[1, 2], [3, 4]], "error": [1, 2]}, r"'x' must have one value per row"),
        ({"x": 3.0, "error": [1, 2]}, r"'x' must have one value per row"),
    ],
)
def test_lists_of_different_lengths_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task.from_dataframe(rows, objectives="error")


def test_text_that_slips_in_late_is_found(tmp_path: Path) -> None:
    rows = [f"{i / 7},{i}" for i in range(3000)]
    rows[2345] = "oops,1"
    with pytest.raises(ValueError, match="'x' has numbers, but row 2346 has 'oops'"):
        csv_task(tmp_path, "\n".join(["x,error", *rows]))


def test_a_column_of_more_than_a_thousand_texts_is_no_parameter_however_often_each_occurs(
    tmp_path: Path,
) -> None:
    texts = [*[f"t{i}" for i in range(1000)] * 3, "another", *["t0"] * 999]
    rows = [f"{text},{i / 7},{i}" for i, text in enumerate(texts)]
    task = csv_task(tmp_path, "\n".join(["note,x,error", *rows]))
    assert task.space.names == ("x",)
    assert len(task) == 4000
    with pytest.raises(ValueError, match="'note' has more than 1000 values"):
        csv_task(tmp_path, "\n".join(["note,x,error", *rows]), params=["note", "x"])
    frame = {"note": texts, "x": range(4000), "error": range(4000)}
    assert Task.from_dataframe(frame, objectives="error").space.names == ("x",)


def test_where_no_column_is_to_be_a_parameter_none_is_looked_for() -> None:
    with pytest.raises(ValueError, match="no column that could be a parameter"):
        Task.from_dataframe({"x": [1, 2], "error": [1, 2]}, objectives="error", params=[])


@pytest.mark.parametrize("quoted", [0, 1234, 2999])
def test_quotes_and_blank_lines_may_come_at_any_time(quoted: int, tmp_path: Path) -> None:
    rows = [f"{i},{i / 7}" for i in range(3000)]
    rows[quoted] = f'"{quoted}","{quoted / 7}"'
    text = "\n".join(["x,error", *rows[:1000], *[""] * 1200, *rows[1000:], "", ""])
    task = csv_task(tmp_path, text)
    assert task.numbers[:, 0].tolist() == list(range(3000))
    assert task.losses[:, 0].tolist() == [i / 7 for i in range(3000)]


@pytest.mark.parametrize(
    ("row", "is_plain"), [("1.5,2\n", True), ('"1.5",2\n', False), ("\n", False), ("1\n", False)]
)
def test_only_plain_rows_are_spared_the_csv_reader_which_takes_twice_as_long(
    row: str, is_plain: bool
) -> None:
    columns = _split(["0.5,1\n", row, "2.5,3\n"], ",", 2)
    assert columns == ([["0.5", "1.5", "2.5"], ["1", "2", "3"]] if is_plain else None)


def test_rows_whose_lengths_only_agree_on_average_are_not_plain() -> None:
    assert _split(["1,2\n", "3\n", "4,5,6\n"], ",", 2) is None


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_plain_rows_may_end_in_any_way(end: str) -> None:
    assert _split(["1,2\r\n", f"3,4{end}"], ",", 2) == [["1", "3"], ["2", "4"]]


def test_a_thousand_texts_may_be_choices(tmp_path: Path) -> None:
    rows = [f"t{i % 1000},{i}" for i in range(2000)]
    task = csv_task(tmp_path, "\n".join(["note,error", *rows]))
    texts = sorted({f"t{i}" for i in range(1000)})
    assert task.space.distributions["note"] == CHOICES(texts)


def test_numbers_that_stand_long_before_the_first_text_of_a_choice_stay_apart(
    tmp_path: Path,
) -> None:
    rows = [f"{i % 3},{i}" for i in range(500)] + [f"{'ab'[i % 2]},{i}" for i in range(4)]
    text = "\n".join(["x,error", *rows]) + "\n"
    task = csv_task(tmp_path, text, params={"x": "choice"})
    assert task.space.distributions["x"] == CHOICES((0, 1, 2, "a", "b"))
    found = [params["x"] for params in task.configurations(range(504))]
    assert found == [*(i % 3 for i in range(500)), "a", "b", "a", "b"]


def test_a_column_that_is_text_only_here_and_there_may_be_a_choice(tmp_path: Path) -> None:
    rows = [f"{i % 3},{i}" for i in range(3000)]
    rows[2345] = "auto,1"
    task = csv_task(tmp_path, "\n".join(["x,error", *rows]), params={"x": "choice"})
    assert task.space.distributions["x"] == CHOICES((0, 1, 2, "auto"))
    assert [task.configuration(i)["x"] for i in (0, 1, 2344, 2345, 2346)] == [0, 1, 1, "auto", 0]


# A million rows


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    n = 1_000_000
    act = np.array(["relu", "tanh", "gelu"])[rng.integers(0, 3, n)]
    columns = [10.0 ** rng.uniform(-5, -1, n), rng.integers(1, 9, n), rng.random(n), act]
    columns += [rng.random(n), 100 * rng.random(n)]
    path = tmp_path_factory.mktemp("million") / "runs.csv"
    with path.open("w") as file:
        file.write("lr,depth,momentum,act,error,time\n")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_million_rows_are_read_within_a_gigabyte(million: Path) -> None:
    # Not getrusage: a process that was started by a larger one begins with its parent's peak.
    code = (
        "import json, re; from metatpe import Task;"
        f"task = Task.from_csv({str(million)!r}, objectives=['error', 'time']);"
        "status = open('/proc/self/status').read();"
        "peak = int(re.search(r'VmHWM:\\s*(\\d+) kB', status)[1]) / 2**20;"
        "print(json.dumps([peak, len(task), len(task.space)]))"
    )
    gigabytes, n, d = answer_of(start_python(code))
    assert (n, d) == (1_000_000, 4)
    assert 0.05 < gigabytes < 1.0


# What is known of a parameter, as text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lr", ("lr", None)),
        ("lr:log", ("lr", "log")),
        ("lr:log:1e-5:1e-1", ("lr", FloatDistribution(1e-5, 1e-1, log=True))),
        ("n:int:1:8", ("n", IntDistribution(1, 8))),
        ("n:logint:1:8", ("n", IntDistribution(1, 8, log=True))),
        ("act:relu|tanh", ("act", CHOICES(("relu", "tanh")))),
        ("b:16|32|0.5|true|none", ("b", CHOICES((16, 32, 0.5, True, "none")))),
    ],
)
def test_a_parameter_is_described_in_a_word(text: str, found: Any) -> None:
    assert parse_parameter(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not NAME:KIND"),
        (":log", "is not NAME:KIND"),
        ("x:1:2", "is not NAME:KIND"),
        ("x:what", "'what' is not a type"),
        ("x:a|b:0:1", r"'a\|b' is not a type"),
        ("x:log:a:b", "a to b is not a range of numbers"),
        ("x:log:0:1", "needs positive values, but there is 0"),
        ("x:float:0:inf", "needs two finite numbers, not 0 and inf"),
        ("x:float:-inf:1", "needs two finite numbers, not -inf and 1"),
        ("x:int:2:1", "the range from 2 to 1 is empty"),
        ("x:int:0.5:1", r"0\.5 to 1 is not a range of whole numbers"),
        ("x:int:1:2.5", r"1 to 2\.5 is not a range of whole numbers"),
    ],
)
def test_what_does_not_describe_a_parameter_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"{message}.*\.$"):
        parse_parameter(text)


def test_names_in_sentences_about_a_table_have_no_control_characters(tmp_path: Path) -> None:
    name = "\u202eevil\x1b[31m"
    file = tmp_path / "runs.csv"
    file.write_text(f"x,{name}\n1,\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no row has a value of '\\u202eevil\\x1b\[31m'\.$"):
        Task.from_csv(file, objectives=[name])
    for low, high, kind in ((1.0, 0.0, "float"), (0.0, np.inf, "int"), (0.0, 1.0, "flot")):
        with pytest.raises(ValueError, match=r"^\\u202eevil\\x1b\[31m: "):
            distribution(kind, low, high, name)
