"""Tables with gaps, categories, dates, booleans and text become numbers, in the same way at every later time."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from oneof import TableEncoder
from oneof.estimator.model_header import MisfitError

rng = np.random.default_rng(0)
N = 120
WORDS = ["red", "green", "blue", "old", "new", "shiny", "dull"]


def table():
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, N).round(1),
            "tame": pd.Series(rng.random(N) < 0.5, dtype=object),
            "pet": rng.choice(["cat", "dog", "cow"], N),
            "born": pd.date_range("2020-01-05", periods=N).strftime("%d.%m.%Y"),
            "seen": pd.date_range("2020-01-01", periods=N, freq="7h"),
            "note": [" ".join(rng.choice(WORDS, 4)) for _ in range(N)],
            "chip": [f"a{i}" for i in range(N)],
            "same": "x",
            "empty": np.nan,
            "zip": rng.choice([10115, 80331], N),
        }
    )
    for row, name in enumerate(["age", "tame", "pet", "born", "seen", "note"]):
        frame.loc[row : 2 * row + 1, name] = None
    return frame


FRAME = table()


def fitted(frame=FRAME, **kinds):
    with pytest.warns(UserWarning, match="'chip' is doubtful"):
        return TableEncoder(kinds or None).fit(frame)


def stored(encoder):
    arrays = {name: array.copy() for name, array in encoder.arrays().items()}
    return json.loads(json.dumps(encoder.facts())), arrays


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_every_kind_of_column_is_told():
    assert fitted(zip="category").said_ == {
        "age": f"number, 2 gaps filled with the median {FRAME['age'].median():g}",
        "tame": f"true or false as 1 or 0, 3 gaps filled with the median {FRAME['tame'].dropna().median():g}",
        "pet": "category: cat, cow, dog, 4 gaps as one more",
        "born": "date: day, season, weekday, 5 gaps filled with the median",
        "seen": "date: day, season, weekday, hour, 6 gaps filled with the median",
        "note": "text: 7 components of its 3- and 4-grams, 7 gaps as 0",
        "chip": "left out: a different text in every row, as identifiers have",
        "same": "left out: every row has 'x'",
        "empty": "left out: it is empty",
        "zip": "category: 10115, 80331",
    }


def test_numbers_by_hand():
    """A literal reading of the docstring, cell by cell."""
    encoder = fitted()
    x = pd.DataFrame(encoder.transform(FRAME), columns=encoder.get_feature_names_out())
    assert np.isfinite(x).all(axis=None)
    for name, source in zip(x, encoder.sources(), strict=True):
        assert name == source or name.startswith((f"{source} ", f"{source}="))
    for i, row in FRAME.iterrows():
        assert x["age"][i] == (FRAME["age"].median() if pd.isna(row["age"]) else row["age"])
        assert x["age missing"][i] == pd.isna(row["age"])
        assert x["pet missing"][i] == (not isinstance(row["pet"], str))
        assert [x[f"pet={name}"][i] for name in ("cat", "cow", "dog")] == [
            row["pet"] == name for name in ("cat", "cow", "dog")
        ]
        if not isinstance(row["born"], str):
            assert [x[f"born season {part}"][i] for part in ("sin", "cos")] == [0, 0]
            continue
        day = datetime.date(*map(int, reversed(row["born"].split("."))))
        assert x["born day"][i] == (day - datetime.date(1970, 1, 1)).days
        angle = 2 * np.pi * day.timetuple().tm_yday / 366
        np.testing.assert_allclose(
            [x["born season sin"][i], x["born season cos"][i]], [np.sin(angle), np.cos(angle)]
        )
        angle = 2 * np.pi * (day.weekday() + 4) / 7  # the first of 1970 was a Thursday
        np.testing.assert_allclose(
            [x["born weekday sin"][i], x["born weekday cos"][i]], [np.sin(angle), np.cos(angle)], atol=1e-9
        )


def test_text_is_latent_semantic_analysis():
    from sklearn.feature_extraction.text import TfidfVectorizer

    encoder = TableEncoder().fit(FRAME[["note"]])
    weights = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True).fit_transform(
        FRAME["note"].fillna("")
    )
    best = np.linalg.svd(weights.toarray())[1]
    x = encoder.transform(FRAME)
    assert x.shape == (N, len(WORDS))  # there are no more different n-grams than words
    np.testing.assert_allclose(np.linalg.norm(x, axis=0), best[: len(WORDS)], rtol=1e-6)
    assert best[len(WORDS)] < 1e-9
    assert (x[FRAME["note"].isna()] == 0).all()


def test_stored_and_made_again_to_the_last_bit():
    encoder = fitted(zip="category")
    again = TableEncoder.restore(*stored(encoder))
    np.testing.assert_array_equal(again.transform(FRAME), encoder.transform(FRAME))
    assert again.get_params() == encoder.get_params()
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert again.said_ == encoder.said_


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts, arrays: facts.pop("dates"),
        lambda facts, arrays: facts.update(columns=["age", "age"]),
        lambda facts, arrays: facts["categories"].append({"name": "no", "categories": ["a"]}),
        lambda facts, arrays: facts["categories"][0].update(categories=[]),
        lambda facts, arrays: facts["categories"][0].update(categories=["a", "a"]),
        lambda facts, arrays: facts["texts"][0].update(ngrams=["abc"]),
        lambda facts, arrays: arrays.pop("0.median"),
        lambda facts, arrays: arrays.update({"0.median": np.full(14, np.nan)}),
        lambda facts, arrays: arrays.update({"2.idf": arrays["2.idf"][:3]}),
        lambda facts, arrays: arrays.update({"9.more": np.zeros(3)}),
    ],
)
def test_damaged_facts_are_refused(damage):
    facts, arrays = stored(fitted())
    damage(facts, arrays)
    with pytest.raises(MisfitError):
        TableEncoder.restore(facts, arrays)


def test_later_tables_with_other_orders_columns_and_types():
    encoder, x = fitted(), fitted().transform(FRAME)
    other = FRAME[[*FRAME][::-1]].drop(columns=["chip", "same", "empty"]).assign(more="?")
    np.testing.assert_array_equal(encoder.transform(other), x)
    texts = FRAME.assign(age=FRAME["age"].map(lambda age: "" if pd.isna(age) else str(age)))
    texts["born"] = pd.to_datetime(FRAME["born"], format="%d.%m.%Y")
    texts["seen"] = FRAME["seen"].map(lambda time: None if pd.isna(time) else time.isoformat())
    texts["pet"] = FRAME["pet"].astype("category")
    np.testing.assert_array_equal(encoder.transform(texts), x)
    gaps = FRAME.assign(zip=None, age=np.nan, pet=None, note="", seen=pd.NaT)
    assert np.isfinite(encoder.transform(gaps)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop(columns=["age", "pet"]),
            "X lacks the columns 'age', 'pet' that the encoder was fitted on",
        ),
        (
            lambda f: f.assign(age="old"),
            "'age' holds 'old' in row 0, but is a column of finite numbers; mend the cell",
        ),
        (lambda f: f.assign(age=np.inf), "'age' holds .*inf.* in row 0, but is a column of finite numbers"),
        (
            lambda f: f.assign(born="2020-01-01"),
            "'born' holds '2020-01-01' in row 0.* dates of the format %d.%m.%Y",
        ),
        (lambda f: f.to_numpy(), "fitted on a frame, whose columns have names; pass a frame"),
    ],
)
def test_what_cannot_be_read_as_before_is_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted().transform(change(FRAME))


def test_an_unknown_category_counts_as_none_with_a_warning():
    encoder = TableEncoder().fit(FRAME[["pet"]])
    with pytest.warns(UserWarning, match="'pet' holds 'horse' in rows 0, 1 .*no row had in training"):
        assert encoder.transform(pd.DataFrame({"pet": ["horse", "horse", "cat"]})).tolist() == [
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 0, 0, 0],
        ]


def kind(cells, **given):
    column = pd.Series(cells, name="c")
    return TableEncoder({"c": given["as_"]} if given else None).fit(column.to_frame().assign(z=0.0)).said_["c"]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1", "2.5", ""], "number, 1 gap filled"),
        ([datetime.timedelta(1), datetime.timedelta(hours=12)], "number"),
        ([datetime.date(2020, 1, 1), None], "date: day, season, weekday, 1 gap"),
        (["2020-01-01T10:00:00+02:00", "2020-06-01"], "date: day, season, weekday, hour"),
        (["12/31/2020", "01/01/2021"], "date: day, season, weekday"),
        (["31/12/2020", "01/01/2021 "], "date: day, season, weekday"),
        (["31 Dec 2020", "1 Jan 2021"], "date: day, season, weekday"),
        (["a", "b", "a"], "category: a, b"),
        (["a b", "c d", "e f"], "category: a b, c d, e f"),
        ([1, "x", 1.0], "category: 1, x"),
        (pd.Categorical([3, 4, 3]), "category: 3, 4"),
        ([f"v{i % 41}" for i in range(99)], "text: 30 components"),
        (pd.Categorical([f"v{i % 300}" for i in range(600)]), "and 45 rare ones that count as none"),
        (["10-20", "30-40", "10-20"], "category: 10-20, 30-40"),
    ],
)
def test_kinds(cells, said):
    assert said in kind(cells)


def test_kinds_that_are_asked_for():
    assert kind(["u1", "u2", "u3"], as_="text").startswith("text: 3 components")
    assert kind(["u1", "u2", "u3"], as_="category").startswith("category: u1, u2, u3")
    assert kind([3, 4, 3], as_="category") == "category: 3, 4"
    assert kind([3, 4, 3], as_="drop") == "left out: as asked"


def test_doubtful_columns_are_warned_of():
    with pytest.warns(UserWarning, match=r"'c' is doubtful \(left out: a different text .*; drop it, or say"):
        kind(["u1", "u2", "u3"])
    with pytest.warns(UserWarning, match=r"'02/01/2020' is read month first, and may be .*; write dates as 2024"):
        kind(["02/01/2020", "03/04/2020"])


def test_frames_of_polars():
    cells = {name: [None if pd.isna(cell) else cell for cell in FRAME[name].tolist()] for name in FRAME}
    frame = pl.DataFrame(cells, strict=False)
    with pytest.raises(TypeError, match="LazyFrame, which has no rows yet; pass"):
        TableEncoder().fit(frame.lazy())
    np.testing.assert_allclose(fitted(frame).transform(frame), fitted().transform(FRAME), rtol=1e-9, atol=1e-9)
    enum = pl.DataFrame({"c": pl.Series([1, 2, 1]).cast(pl.String).cast(pl.Categorical), "d": [1.5, None, 2.5]})
    assert TableEncoder().fit(enum).said_ == {"c": "category: 1, 2", "d": "number, 1 gap filled with the median 2"}
