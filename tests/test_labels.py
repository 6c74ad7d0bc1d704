import json
import re
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from oneof import labels
from oneof.labels import (
    check_learnable,
    check_same_rows,
    encode,
    encode_for_model,
    from_complementary,
    from_votes,
    rows_text,
    warn_of_absent,
    warn_of_unlearned,
)

CATS = [["cat", "dog"], ["dog"], ["cow", "cat"]]
CATS_MATRIX = [[1, 0, 1], [0, 0, 1], [1, 1, 0]]


def objects(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def decode(candidates, classes):
    return [set(classes[row].tolist()) for row in candidates]


def assert_encoded(encoded, matrix, classes):
    candidates, names = encoded
    assert isinstance(candidates, np.ndarray)
    assert isinstance(names, np.ndarray)
    assert candidates.dtype == bool
    assert candidates.tolist() == np.asarray(matrix, dtype=bool).tolist()
    assert names.tolist() == list(classes)


# Matrices


MATRICES = {
    "int": np.array,
    "bool": lambda m: np.array(m, dtype=bool),
    "float": lambda m: np.array(m, dtype=float),
    "uint8": lambda m: np.array(m, dtype=np.uint8),
    "object": lambda m: np.array(m, dtype=object),
    "tensor": torch.tensor,
    "bool tensor": lambda m: torch.tensor(m, dtype=torch.bool),
    "tensor with gradient": lambda m: torch.tensor(m, dtype=torch.float32, requires_grad=True),
    "csr_matrix": sparse.csr_matrix,
    "csr_array": lambda m: sparse.csr_array(np.array(m, dtype=bool)),
    "coo_array": sparse.coo_array,
    "lil_matrix": lambda m: sparse.lil_matrix(np.array(m, dtype=float)),
}


@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_a_matrix_of_zeros_and_ones_marks_the_candidates(make):
    assert_encoded(encode(make(CATS_MATRIX)), CATS_MATRIX, [0, 1, 2])
    assert_encoded(encode(make(CATS_MATRIX), classes=["z", "a", "m"]), CATS_MATRIX, ["z", "a", "m"])


@pytest.mark.parametrize("dtype", [int, float, bool, "Int64", "boolean", object])
def test_the_columns_of_a_frame_name_the_classes(dtype):
    frame = pd.DataFrame(CATS_MATRIX, columns=["dog", "cat", "cow"]).astype(dtype)
    assert_encoded(encode(frame), CATS_MATRIX, ["dog", "cat", "cow"])
    assert_encoded(encode(frame, classes=["x", "y", "z"]), CATS_MATRIX, ["x", "y", "z"])


def test_a_frame_may_mix_column_types():
    frame = pd.DataFrame({"a": [True, False], "b": [0, 1], "c": [1.0, 0.0]})
    assert_encoded(encode(frame), [[1, 0, 1], [0, 1, 0]], ["a", "b", "c"])


def test_a_frame_in_another_column_order_is_not_renamed_silently():
    frame = pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"])
    with pytest.raises(ValueError, match=r"columns of y are \['a', 'b'\].*\['b', 'a'\].*y\[classes\]"):
        encode(frame, classes=["b", "a"])
    assert_encoded(encode(frame[["b", "a"]], classes=["b", "a"]), [[0, 1], [1, 0]], ["b", "a"])
    assert_encoded(encode(frame, classes=["a", "b"]), [[1, 0], [0, 1]], ["a", "b"])


def test_the_result_shares_no_memory_with_the_input():
    y = np.array(CATS_MATRIX, dtype=bool)
    candidates, _ = encode(y)
    assert not np.shares_memory(candidates, y)
    from_complementary(y)
    assert y.tolist() == np.array(CATS_MATRIX, dtype=bool).tolist()


def test_reading_a_sparse_matrix_leaves_it_unchanged():
    y = sparse.csr_array((np.array([1, 0, 1]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert_encoded(encode(y), [[0, 1], [1, 0]], [0, 1])
    assert y.nnz == 3


def test_a_sparse_matrix_is_never_made_dense_in_its_own_type():
    y = sparse.random_array((20_000, 100), density=0.01, format="csr", rng=0)
    y.data[:] = 1
    y = y + sparse.csr_array((np.ones(20_000), (np.arange(20_000), np.zeros(20_000, int))), shape=y.shape)
    y.data[:] = 1
    tracemalloc.start()
    candidates, _ = encode(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * candidates.nbytes


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan, np.inf])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_matrix, sparse.coo_array, torch.tensor])
def test_other_values_in_a_matrix_are_refused(make, value):
    y = make(np.array([[1, 0], [0, value], [1, 1], [value, 1]], dtype=float))
    message = (
        rf"values such as {re.escape(repr(float(value)))} in rows 1, 3 \(2 in all\).*only 0 and 1.*from_votes"
    )
    with pytest.raises(ValueError, match=message):
        encode(y)


@pytest.mark.parametrize(
    "y",
    [
        sparse.coo_array(([1, 1, 1], ([0, 1, 1], [0, 1, 1])), shape=(2, 2)),
        sparse.csr_array(([1, 1, 1], [0, 1, 1], [0, 1, 3]), shape=(2, 2)),
    ],
    ids=["coo", "csr"],
)
def test_repeated_sparse_entries_add_up(y):
    with pytest.raises(ValueError, match="values such as 2 in row 1"):
        encode(y)


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"a": [1, 0], "b": pd.array([1, pd.NA], dtype="Int64")}),
        np.array([[1, 0], [None, 1]], dtype=object),
        np.ma.array([[1, 0], [1, 1]], mask=[[False, False], [True, False]]),
    ],
    ids=["pandas.NA", "None", "masked"],
)
def test_missing_values_in_a_matrix_are_refused(y):
    with pytest.raises(ValueError, match="in row 1, but a matrix may hold only 0 and 1"):
        encode(y)


def test_a_matrix_of_names_is_refused():
    with pytest.raises(ValueError, match=r"'cat' in rows 0, 1 .*class names as lists"):
        encode(np.array([["cat", "dog"], ["dog", "cow"]]))


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c", "d"]])
def test_classes_must_match_the_columns(names):
    with pytest.raises(ValueError, match=rf"classes has {len(names)} names and y has 3 columns"):
        encode(np.array(CATS_MATRIX), classes=names)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["a", "a"], ValueError, "header of y holds 'a' more than once"),
        (["a", 1], ValueError, "header of y mixes strings such as 'a' and numbers such as 1"),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), TypeError, "header of y .* type tuple"),
    ],
)
def test_column_names_must_be_class_names(columns, error, message):
    with pytest.raises(error, match=message):
        encode(pd.DataFrame([[1, 0], [0, 1]], columns=columns))


# Sets of names


SETS = {
    "lists": list,
    "tuple of tuples": lambda sets: tuple(map(tuple, sets)),
    "sets": lambda sets: [set(s) for s in sets],
    "frozensets": lambda sets: [frozenset(s) for s in sets],
    "arrays": lambda sets: [np.array(s) for s in sets],
    "object array": objects,
    "object array of arrays": lambda sets: objects([np.array(s) for s in sets]),
    "Series": lambda sets: pd.Series(sets, index=range(5, 5 + len(sets))),
    "Series of sets": lambda sets: pd.Series([set(s) for s in sets]),
    "mixed": lambda sets: [tuple(sets[0]), *map(set, sets[1:])],
}


@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
def test_every_container_of_sets_reads_the_same(make):
    assert_encoded(encode(make(CATS)), CATS_MATRIX, ["cat", "cow", "dog"])


def test_lists_of_tensors_hold_names():
    assert_encoded(encode([torch.tensor([3, 1]), torch.tensor([2])]), [[1, 0, 1], [0, 1, 0]], [1, 2, 3])


@pytest.mark.parametrize("make", SETS.values(), ids=SETS)
def test_nested_zeros_and_ones_are_names(make):
    assert_encoded(encode(make([[0, 1], [1, 0], [1]])), [[1, 1], [1, 1], [0, 1]], [0, 1])


def test_repeated_names_in_a_set_count_once():
    assert_encoded(encode([["b", "b"], ["a", "b"]]), [[0, 1], [1, 1]], ["a", "b"])


def test_a_lone_label_among_sets_is_a_set_of_one():
    assert_encoded(encode([["a", "b"], "b"]), [[1, 1], [0, 1]], ["a", "b"])


@pytest.mark.parametrize(
    ("sets", "kind"),
    [
        ([[10, 2], [2]], np.dtype("int64")),
        ([[np.int32(10), np.int32(2)], [np.int32(2)]], np.dtype("int64")),
        ([["a", "long name"], ["a"]], np.dtype("<U9")),
        ([[np.str_("a")], [np.str_("b")]], np.dtype("<U1")),
        ([[True], [False]], np.dtype(bool)),
        ([[1.0], [2.0]], np.dtype("float64")),
    ],
)
def test_class_names_keep_their_kind(sets, kind):
    candidates, classes = encode(sets)
    assert classes.dtype == kind
    assert decode(candidates, classes) == [set(s) for s in sets]


def test_numbers_are_sorted_as_numbers():
    assert encode([[10], [9, -1]])[1].tolist() == [-1, 9, 10]


# Strings


@pytest.mark.parametrize("make", [list, tuple, np.array, objects, pd.Series, pd.Index])
def test_a_separator_splits_strings(make):
    encoded = encode(make(["cat| dog ", " dog", "|cow||cat|"]), separator="|")
    assert_encoded(encoded, CATS_MATRIX, ["cat", "cow", "dog"])


@pytest.mark.parametrize("separator", [" ", ", ", "||", "\t", "."])
def test_a_separator_is_taken_literally(separator):
    encoded = encode([separator.join(row) for row in CATS], separator=separator)
    assert_encoded(encoded, CATS_MATRIX, ["cat", "cow", "dog"])


def test_without_separator_a_string_is_one_label():
    assert_encoded(encode(["cat|dog", "dog"]), [[1, 0], [0, 1]], ["cat|dog", "dog"])
    assert_encoded(encode([["cat|dog"], ["a b", "dog"]]), [[0, 1, 0], [1, 0, 1]], ["a b", "cat|dog", "dog"])


def test_a_string_without_parts_is_an_empty_set():
    with pytest.raises(ValueError, match=r"candidate set is empty in rows 1, 2 \(2 in all\)"):
        encode(["a|b", "", " | "], separator="|")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1], "row 1 is of type int: pass strings only, or leave separator out"),
        ([["a|b"], ["b"]], "row 0 is of type list"),
        ([1, 2], "row 0 is of type int"),
        (np.array([1.0, 2.0]), "row 0 is of type float"),
        (np.eye(2), "y is a matrix: pass strings, or leave separator out"),
        (sparse.eye_array(2), "y is a matrix"),
        (pd.DataFrame(np.eye(2)), "y is a matrix"),
    ],
)
def test_a_separator_needs_strings(y, message):
    with pytest.raises(TypeError, match=f"separator is given, but {message}"):
        encode(y, separator="|")


def test_a_separator_is_a_string_with_characters():
    with pytest.raises(ValueError, match="separator is ''"):
        encode(["a", "b"], separator="")
    with pytest.raises(TypeError, match="separator is 3, but must be a string"):
        encode(["a", "b"], separator=3)


# Strings that look like sets


def names_and_sets(separator):
    """Two hundred strings of one to three names."""
    rng = np.random.default_rng(0)
    return [separator.join(rng.choice(["ant", "bee", "cow", "dog"], rng.integers(1, 4))) for _ in range(200)]


@pytest.mark.parametrize("separator", ["|", ";", ","])
@pytest.mark.parametrize("make", [list, np.array, objects, pd.Series])
def test_strings_that_hold_several_labels_are_doubtful(make, separator):
    y = make(names_and_sets(separator))
    with pytest.warns(
        UserWarning, match=rf"contain '\{separator}', such as .*pass separator='\{separator}' to split"
    ):
        encode(y)
    with pytest.warns(UserWarning, match="count as one class each"):
        from_complementary(y)


@pytest.mark.parametrize("dumps", [json.dumps, repr])
def test_lists_written_as_text_are_doubtful(dumps):
    y = [dumps(text.split("|")) for text in names_and_sets("|")]
    with pytest.warns(UserWarning, match=r"such as .* look like lists written as text.*json\.loads") as caught:
        encode(y)
    assert len(caught) == 1


PEOPLE = [f"{last}, {first}" for last, first in zip("ABCDEFGHIJ", "klmnopqrst", strict=True)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("y", "arguments"),
    [
        (PEOPLE, {}),
        (["cat", "dog", "cow", "cat|dog"], {}),
        (["cat", "dog", "cow, brown"], {}),
        ([[text] for text in names_and_sets("|")], {}),
        (names_and_sets("|"), {"classes": sorted(set(names_and_sets("|")))}),
        (names_and_sets("|"), {"separator": "|"}),
        (["[x]", "y", "z"], {}),
    ],
)
def test_names_with_a_separator_may_be_meant(y, arguments):
    encode(y, **arguments)


def test_an_unknown_label_that_holds_known_ones_names_the_separator():
    with pytest.raises(
        ValueError, match=r"unknown labels \('a\|b', 'b\|c'\) in rows 0, 1 .*: pass separator='\|'"
    ):
        encode(["a|b", "b|c"], classes=["a", "b", "c"])


# Labels of a model


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (
            ["cat", "dog"],
            [0, 1],
            r"the numbers 0, 1, as of a matrix .*fit with pandas.DataFrame\(matrix, columns=n",
        ),
        ([["cat", "dog"], ["dog"]], [0, 1], "the numbers 0, 1"),
        ([0, 1], ["cat", "dog"], r"names such as 'cat': pass names, or model.classes_\[y\]"),
        (np.array([0, 1]), ["cat", "dog"], "names such as 'cat': pass names"),
        (["cat", "cow"], ["cat", "dog"], r"unknown labels \('cow'\).*encode all rows first"),
        (["cat|dog", "cat"], ["cat", "dog"], r"pass separator='\|'$"),
        (np.eye(3), ["cat", "dog"], "classes has 2 names and y has 3 columns.*encode all rows first"),
        (
            pd.DataFrame(np.eye(2), columns=["dog", "elk"]),
            ["cat", "dog"],
            r"the columns of y are \['dog', 'elk'\], but the classes are, in .*, \['cat', 'dog'\].*reindex",
        ),
        ([["cat"], []], ["cat", "dog"], "candidate set is empty in row 1, .* or drop the rows$"),
    ],
)
def test_labels_that_are_not_those_of_a_model(y, classes, message):
    with pytest.raises(ValueError, match=message) as caught:
        encode_for_model(y, np.array(classes))
    assert len(str(caught.value)) < 500


def test_a_frame_without_names_takes_those_of_the_classes():
    frame = pd.DataFrame([[1, 0], [0, 1]])
    assert_encoded(encode(frame, classes=[1, 2]), [[1, 0], [0, 1]], [1, 2])
    with pytest.raises(ValueError, match=r"columns of y are \[0, 1\].*\[1, 0\].*y\[classes\] to reorder"):
        encode(frame, classes=[1, 0])


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("a\0", r"the label 'a\\x00', but arrays drop NUL characters"),
        (2**63, "the label 9223372036854775808, but integers must have 64 bits: convert all labels to strings"),
        (-(10**9999), "the label an integer of 33216 bits, but"),
    ],
    ids=range(3),
)
def test_labels_that_an_array_cannot_hold_are_refused(label, message):
    other = "b" if isinstance(label, str) else 1
    with pytest.raises(ValueError, match=message):
        encode([[label], [other]])
    with pytest.raises(ValueError, match=message):
        from_votes([[label], [other]])


# Plain labels


@pytest.mark.parametrize("make", [list, tuple, np.array, objects, pd.Series, pd.Index, pd.Categorical])
@pytest.mark.parametrize("names", [["b", "a", "b"], [7, 3, 7], [True, False, True], [2.0, 1.0, 2.0]])
def test_plain_labels_are_sets_of_one(make, names):
    assert_encoded(encode(make(names)), [[0, 1], [1, 0], [0, 1]], sorted(set(names)))


def test_a_plain_tensor_holds_labels():
    assert_encoded(encode(torch.tensor([5, 1, 5])), [[0, 1], [1, 0], [0, 1]], [1, 5])


def test_anything_with_an_array_is_read_as_one():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 0])

    assert_encoded(encode(Wrapped()), [[0, 1], [1, 0]], [0, 1])


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, torch.tensor])
def test_a_column_is_raveled_with_a_warning(make):
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        encoded = encode(make([[1], [0], [2]]))
    assert_encoded(encoded, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], [0, 1, 2])


def test_a_column_of_strings_can_be_split():
    with pytest.warns(DataConversionWarning):
        encoded = encode(pd.DataFrame({"label": ["a|b", "b"]}), separator="|")
    assert_encoded(encoded, [[1, 1], [0, 1]], ["a", "b"])


@pytest.mark.parametrize("y", [np.array([0.5, 1.2, 3.0]), [0.5, 1.0], [[0.5], [1.0, 2.0]]])
def test_continuous_targets_raise_the_error_of_scikit_learn(y):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        encode(y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        encode(y, classes=[0, 1, 2, 3])


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_infinite_labels_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        encode(np.array([np.inf, 1.0]))


@pytest.mark.filterwarnings("error")
def test_whole_floats_cause_no_warning():
    assert_encoded(encode(np.array([1.0, 0.0, 2.0])), [[0, 1, 0], [1, 0, 0], [0, 0, 1]], [0.0, 1.0, 2.0])


def test_complex_labels_raise_the_error_of_scikit_learn():
    with pytest.raises(ValueError, match="Complex data not supported"):
        encode(np.array([1 + 1j, 2]))


# Classes


@pytest.mark.parametrize("make", [list, tuple, np.array, objects, pd.Series, pd.Index])
def test_classes_keep_their_order(make):
    encoded = encode([["b"], ["a", "c"]], classes=make(["c", "a", "b"]))
    assert_encoded(encoded, [[0, 0, 1], [1, 1, 0]], ["c", "a", "b"])


def test_a_range_may_give_the_classes():
    assert_encoded(encode([2, 0], classes=range(3)), [[0, 0, 1], [1, 0, 0]], [0, 1, 2])


def test_a_fold_that_lacks_a_class_keeps_its_column():
    _, classes = encode(CATS)
    assert_encoded(encode(CATS[1:2], classes=classes), [[0, 0, 1]], ["cat", "cow", "dog"])


def test_whole_floats_match_integer_classes():
    assert_encoded(encode(np.array([1.0, 0.0]), classes=[0, 1]), [[0, 1], [1, 0]], [0, 1])


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (["a", "b", "a"], ValueError, "classes holds 'a' more than once"),
        ([1, 1.0], ValueError, "classes holds 1 more than once"),
        (["a", None], ValueError, "classes holds missing labels .* in row 1"),
        (["a", 1], ValueError, "classes mixes strings such as 'a' and numbers such as 1"),
        ([["a", "b"]], TypeError, "classes holds a label of type list"),
        ("ab", TypeError, "classes is of type str"),
        ({"a", "b"}, TypeError, "classes is of type set, but the order of classes matters: pass a list"),
        (iter("ab"), TypeError, "classes is of type .*iterator"),
        (np.array("a"), TypeError, "classes is of type ndarray"),
        (2, TypeError, "classes is of type int"),
    ],
)
def test_unfit_classes_are_refused(classes, error, message):
    with pytest.raises(error, match=message):
        encode([["a"], ["b"]], classes=classes)
    with pytest.raises(error, match=message):
        encode(np.eye(2), classes=classes)


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (
            [["a"], ["z", "b"], ["x", "z"], ["x"]],
            ["a", "b"],
            r"unknown labels \('x', 'z'\) in rows 1, 2, 3 \(3 in",
        ),
        ([0, 3, 1], [0, 1], r"unknown labels \(3\) in row 1, .*add them to classes or mend the rows"),
        (["1", "2"], [1, 2], r"unknown labels \('1', '2'\) in rows 0, 1"),
        (np.array([1, 5]), [0, 1], r"unknown labels \(5\) in row 1"),
        (
            list(range(15)),
            [0, 1],
            r"unknown labels \(2, 3, .*, 11, \.\.\. \(13 in all\)\) in rows 2, 3, .*, \.\.\. \(13 in all\)",
        ),
    ],
)
def test_unknown_labels_are_refused(y, classes, message):
    with pytest.raises(ValueError, match=message):
        encode(y, classes=classes)


# Defects


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a"], [], ["b"], []], r"candidate set is empty in rows 1, 3 \(2 in all\).*add the labels or drop"),
        ([["a"], set(), ["b"]], "candidate set is empty in row 1,"),
        ([np.array([1]), np.array([], dtype=int)], "candidate set is empty in row 1,"),
        ([[], []], "candidate set is empty in rows 0, 1"),
        (np.array([[0, 1], [0, 0], [1, 1]]), "candidate set is empty in row 1,"),
        (sparse.csr_array([[0, 0], [0, 1]]), "candidate set is empty in row 0,"),
        (np.zeros((12, 2)), r"rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\. \(12 in all\)"),
    ],
)
def test_empty_sets_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        encode(y)


@pytest.mark.parametrize("missing", [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan")])
def test_missing_labels_are_refused(missing):
    message = r"missing labels \(None or NaN\) in rows 1, 3 \(2 in all\).*fill them in or drop"
    labels = ["a", missing, "b", missing]
    for y in (
        labels,
        objects(labels),
        [[label] for label in labels],
        [["a"], ["b", missing], ["b"], missing],
    ):
        with pytest.raises(ValueError, match=message):
            encode(y)
    with pytest.raises(ValueError, match=message):
        encode(labels, separator="|")
    with pytest.raises(ValueError, match=message):
        encode(labels, classes=["a", "b"])


@pytest.mark.parametrize(
    "y",
    [
        np.array([1, np.nan, 2]),
        pd.Series([1, None, 2]),
        pd.Series([1, pd.NA, 2], dtype="Int64"),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="category"),
        np.ma.array([1, 7, 2], mask=[False, True, False]),
    ],
    ids=["float", "Series", "Int64", "str", "category", "masked"],
)
def test_missing_labels_of_arrays_are_refused(y):
    with pytest.raises(ValueError, match=r"missing labels .* in row 1,"):
        encode(y)


@pytest.mark.parametrize("y", [[["b", 1], ["a"]], ["a", 1], objects([["a"], [1]]), [["a"], {True}]])
def test_strings_and_numbers_do_not_mix(y):
    with pytest.raises(
        ValueError, match=r"mixes strings such as 'a' and numbers such as (1|True).*convert them all"
    ):
        encode(y)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        ([["a"], [{"b": 1}]], "dict"),
        ([["a"], [["b"]]], "list"),
        ([["a"], (x for x in "b")], "generator"),
        ([["a"], [b"b"]], "bytes"),
        ([["a"], np.eye(2)], "ndarray"),
        ([["a"], [np.datetime64("2020-01-01")]], "date"),
        ([["a"], [object()]], "object"),
    ],
)
def test_labels_of_other_types_are_refused(y, kind):
    with pytest.raises(TypeError, match=f"label of type {kind} in row 1, but labels must be strings or integers"):
        encode(y)


@pytest.mark.parametrize("y", [["a", "a"], [["a"]], [3, 3], np.array([[1], [1]])])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_one_class_is_refused(y):
    with pytest.raises(
        ValueError, match=r"found 1 class, \[.*\], but at least two classes are needed: pass all .*`classes`"
    ):
        encode(y)


def test_one_column_of_a_sparse_matrix_is_one_class():
    with pytest.raises(ValueError, match="at least two classes are needed"):
        encode(sparse.csr_array([[1], [1]]))
    with pytest.raises(ValueError, match="at least two classes are needed"):
        encode(["a", "a"], classes=["a"])


@pytest.mark.parametrize(
    "y", [[], (), np.array([]), np.zeros((0, 3)), pd.Series([], dtype=object), sparse.csr_array((0, 3))]
)
def test_zero_rows_are_refused(y):
    with pytest.raises(ValueError, match="y has 0 rows, but at least one is needed"):
        encode(y)


@pytest.mark.parametrize("y", [np.array(3), np.zeros((2, 2, 2)), sparse.coo_array([1, 0])])
def test_other_dimensions_are_refused(y):
    with pytest.raises(ValueError, match=rf"y has shape {re.escape(str(y.shape))}, but must have 1 or 2 dim"):
        encode(y)


@pytest.mark.parametrize(
    "y", ["cat|dog", {"a": 1}, {"a", "b"}, (s for s in CATS), iter(CATS), map(list, CATS), 3, np.str_("cat")]
)
def test_other_containers_are_refused(y):
    message = f"y is of type {type(y).__name__}, but must be a list, .*: put the rows into a list"
    with pytest.raises(TypeError, match=message):
        encode(y)
    with pytest.raises(TypeError, match=message):
        encode(y, separator="|")


@pytest.mark.parametrize("read", [encode, from_complementary])
def test_no_target_raises_the_error_scikit_learn_expects(read):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        read(None)


# Votes


VOTES = [["cat", "dog", "cat"], ["dog", None, "dog"], ["cow", "cat", ""]]


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.DataFrame, objects, pd.Series])
def test_each_vote_makes_a_candidate(make):
    encoded = from_votes(make([[vote or "" for vote in row] for row in VOTES]))
    assert_encoded(encoded, CATS_MATRIX, ["cat", "cow", "dog"])


def test_min_votes_asks_for_agreement():
    assert_encoded(from_votes(VOTES[:2], min_votes=2), [[1, 0], [0, 1]], ["cat", "dog"])
    encoded = from_votes(VOTES[:2], classes=["dog", "cow", "cat"], min_votes=np.int64(2))
    assert_encoded(encoded, [[0, 0, 1], [1, 0, 0]], ["dog", "cow", "cat"])


def test_labels_below_min_votes_remain_classes():
    assert_encoded(from_votes([["a", "a", "c"], ["b", "b"]], min_votes=2), [[1, 0, 0], [0, 1, 0]], ["a", "b", "c"])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", np.float32("nan")])
def test_missing_votes_are_ignored(missing):
    assert_encoded(from_votes([["b", missing], [missing, "a"]]), [[0, 1], [1, 0]], ["a", "b"])
    assert_encoded(from_votes(pd.DataFrame([["b", missing], [missing, "a"]])), [[0, 1], [1, 0]], ["a", "b"])
    assert_encoded(from_votes([[2, missing], [missing, 1]]), [[0, 1], [1, 0]], [1, 2])


def test_masked_votes_are_missing():
    votes = np.ma.array([[1, 2], [2, 9]], mask=[[False, False], [False, True]])
    assert_encoded(from_votes(votes), [[1, 1], [0, 1]], [1, 2])


def test_ragged_votes():
    assert_encoded(from_votes([["a"], ("b", "a", "b"), np.array(["b"])]), [[1, 0], [1, 1], [0, 1]], ["a", "b"])


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, torch.tensor])
def test_numeric_votes_with_nan_name_integers(make):
    candidates, classes = from_votes(make([[1.0, np.nan, 10.0], [2.0, 2.0, np.nan]]))
    assert_encoded((candidates, classes), [[1, 0, 1], [0, 1, 0]], [1, 2, 10])
    assert classes.dtype == np.int64


def test_one_annotator_needs_no_warning(recwarn):
    assert_encoded(from_votes(np.array([["b"], ["a"]])), [[0, 1], [1, 0]], ["a", "b"])
    assert not recwarn.list


@pytest.mark.parametrize(
    ("votes", "arguments", "error", "message"),
    [
        (
            [["a", "b"], ["b", "b"], ["a"]],
            {"min_votes": 2},
            ValueError,
            r"min_votes=2 in rows 0, 2 \(2 in all\)",
        ),
        (
            [["a"], [None, ""], ["b"]],
            {},
            ValueError,
            "no label is voted for in row 1, .*drop the rows, or gather votes",
        ),
        ([["a"], [], ["b"]], {}, ValueError, "is voted for in row 1"),
        ([[None], [np.nan]], {}, ValueError, "is voted for in rows 0, 1"),
        ([["a"], ["a"]], {}, ValueError, "at least two classes"),
        ([["a"], ["b"]], {"min_votes": 0}, ValueError, "min_votes is 0, but must be at least 1"),
        ([["a"], ["b"]], {"min_votes": 1.0}, TypeError, "min_votes is 1.0, but must be an integer"),
        ([["a"], ["b"]], {"min_votes": True}, TypeError, "min_votes is True, but must be an integer"),
        ([["a"], ["b"]], {"min_votes": None}, TypeError, "min_votes is None, but must be an integer"),
        (
            [["a"], ["b", "z"]],
            {"classes": ["a", "b"]},
            ValueError,
            r"votes names unknown labels \('z'\) in row 1",
        ),
        ([["a"], [1]], {}, ValueError, "votes mixes strings such as 'a' and numbers such as 1"),
        ([["a"], [{"b": 1}]], {}, TypeError, "votes holds a label of type dict in row 1"),
        ([[0.5, 1]], {}, ValueError, "Unknown label type: continuous"),
        (["a", "b"], {}, TypeError, "votes holds a str in row 0, but each row must list the labels"),
        ([["a"], {"a", "b"}], {}, TypeError, "votes holds a set in row 1"),
        (np.array([1, 2]), {}, TypeError, "votes holds a int in row 0"),
        (sparse.eye_array(2), {}, TypeError, "votes is a sparse matrix"),
        (iter([["a"]]), {}, TypeError, "votes is of type list_iterator"),
        ([], {}, ValueError, "votes has 0 rows"),
        (None, {}, ValueError, "requires votes to be passed"),
    ],
)
def test_unfit_votes_are_refused(votes, arguments, error, message):
    with pytest.raises(error, match=message):
        from_votes(votes, **arguments)


LONG = pd.DataFrame(
    {
        "task": [f"t{i // 3}" for i in range(300)],
        "worker": [f"w{i % 7}" for i in range(300)],
        "label": [["cat", "cow", "dog"][i // 2 % 3] for i in range(300)],
    }
)
WIDE = LONG.pivot(index="task", columns="worker", values="label")


@pytest.mark.parametrize(
    ("votes", "advice"),
    [
        (LONG, r"from_votes\(votes, long=\('task', 'worker', 'label'\)\)"),
        (LONG.head(4), r"from_votes\(votes, long=\('task', 'worker', 'label'\)\)"),
        (
            LONG.set_axis(["ImageID", "Annotator Id", "Answers"], axis=1),
            r"from_votes\(votes, long=\('ImageID', 'Annotator Id', 'Answers'\)\)",
        ),
        (LONG.set_axis(["x", "worker", "label"], axis=1), r"long=\('x', 'worker', 'label'\)"),
        (LONG.set_axis(["x", "y", "z"], axis=1), r"no values in common.*long=\('x', 'y', 'z'\)"),
        (LONG[["task", "label"]], r"no values in common.*long=\('task', 'worker', 'label'\)"),
        (LONG.to_numpy(), r"from_votes\(pandas\.DataFrame\(votes\), long=\(0, 1, 2\)\)"),
    ],
    ids=range(7),
)
def test_a_table_with_one_row_per_vote_is_refused(votes, advice):
    with pytest.raises(ValueError, match=advice) as caught:
        from_votes(votes)
    assert len(str(caught.value)) < 400


@pytest.mark.filterwarnings("error")
def test_a_table_with_one_column_per_annotator_is_read():
    encoded = from_votes(WIDE)
    assert_encoded(
        encoded, [[name in set(row) for name in ("cat", "cow", "dog")] for row in WIDE.to_numpy()], CLASSES
    )
    for votes in (WIDE.to_numpy(), WIDE.set_axis([f"worker{i}" for i in range(7)], axis=1), WIDE[["w0"]].dropna()):
        assert from_votes(votes).classes.tolist() == CLASSES
    lone = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["x"] * 40})
    assert from_votes(lone).classes.tolist() == ["x", "y"]
    each_once = pd.DataFrame({"a": range(40), "b": range(40)})
    assert len(from_votes(each_once).classes) == 40


CLASSES = ["cat", "cow", "dog"]


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (
            [f"t{i}" for i in range(100)],
            ValueError,
            r"'new' of votes has a different value in every row.*drop\(col",
        ),
        (range(100, 200), ValueError, r"'new' of votes has a different value in every row"),
        (np.linspace(0, 1, 100), ValueError, "'new' of votes holds 0.01.*, but votes are class names"),
        (pd.date_range("2020-01-01", periods=100), TypeError, "'new' of votes holds dates"),
        ([*pd.date_range("2020-01-01", periods=99), None], TypeError, "'new' of votes holds dates"),
    ],
    ids=range(5),
)
def test_columns_that_cannot_be_votes_are_refused(column, error, message):
    votes = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["y", "x"] * 50})
    with pytest.raises(error, match=message):
        from_votes(votes.assign(new=column))


def test_a_column_that_hardly_holds_votes_is_doubtful():
    numbers = pd.DataFrame({"a": np.arange(300) // 3, "b": np.arange(300) % 7, "c": np.arange(300) % 3})
    with pytest.warns(UserWarning, match=r"hardly any value of the column 'a' of votes .* long=\("):
        from_votes(numbers)


# Complementary labels


def test_all_but_the_wrong_labels_are_candidates():
    assert_encoded(from_complementary(["b", "a", "c"]), [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["a", "b", "c"])
    assert_encoded(from_complementary(np.array([[1, 0, 0], [0, 1, 1]])), [[0, 1, 1], [1, 0, 0]], [0, 1, 2])
    frame = pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"])
    assert_encoded(from_complementary(frame), [[0, 1], [1, 0]], ["a", "b"])


def test_a_class_never_excluded_comes_from_classes():
    encoded = from_complementary(["a", "b"], classes=["c", "b", "a"])
    assert_encoded(encoded, [[1, 1, 0], [1, 0, 1]], ["c", "b", "a"])


@pytest.mark.parametrize(
    ("y", "arguments"),
    [
        ([["a"], [], ["b"]], {}),
        (["a", "", "b"], {"separator": "|"}),
        (np.array([[1, 0], [0, 0], [0, 1]]), {"classes": ["a", "b"]}),
        (sparse.csr_array([[1, 0], [0, 0], [0, 1]]), {"classes": ["a", "b"]}),
    ],
)
def test_a_row_without_wrong_labels_is_full(y, arguments):
    assert_encoded(from_complementary(y, **arguments), [[0, 1], [1, 1], [1, 0]], ["a", "b"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            [["a"], ["a", "b"], ["b", "a"]],
            r"every class is excluded in rows 1, 2 \(2 in all\).*drop.*`classes`",
        ),
        (np.array([[0, 1], [1, 1]]), "every class is excluded in row 1,"),
        (["a", "a"], "every class is excluded in rows 0, 1 .*pass all classes"),
        ([["a"], None], "missing labels .* in row 1"),
    ],
)
def test_unfit_complementary_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        from_complementary(y)


def test_one_complementary_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        from_complementary([[], []], classes=["a"])


# Helpers


def test_classes_without_training_rows_are_doubtful():
    candidates = np.array([[1, 0, 0, 1], [1, 0, 0, 0]], dtype=bool)
    with pytest.warns(
        UserWarning, match=r"the classes 'b', 'c' are candidates of no training row.*CandidateKFold"
    ):
        warn_of_absent(candidates, np.array(list("abcd")))
    with pytest.warns(UserWarning, match="class 'b' is a candidate of no training row"):
        warn_of_absent(candidates[:, :2], np.array(["a", "b"]))


@pytest.mark.filterwarnings("error")
def test_rows_that_are_known_cause_no_warning():
    names, distributions = np.array(["a", "b"]), np.array([[1.0, 0.0], [0.3, 0.7]])
    warn_of_absent(distributions > 0, names)
    warn_of_unlearned(np.array([[False, True]] * 20), distributions, names)


def test_rows_to_score_whose_labels_no_training_row_had_are_doubtful():
    names, distributions = np.array(["a", "b", "c"]), np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0]])
    rows = np.array([[True, False, True], [False, False, True]])
    with pytest.warns(UserWarning, match=r"y has no label but 'c' in row 1, .*count as wrong.*CandidateKFold"):
        warn_of_unlearned(rows, distributions, names)
    mostly = np.array([[False, True, False]] * 19 + [[True, False, False]])
    with pytest.warns(
        UserWarning, match=r"class 'b' is a candidate of nearly all rows of y, .*no training row.*CandidateKFold"
    ):
        warn_of_unlearned(mostly, distributions, names)


def test_full_sets_teach_nothing():
    with pytest.raises(ValueError, match="every candidate set holds all 3 classes, so there is nothing to learn"):
        check_learnable(np.ones((2, 3), dtype=bool))
    check_learnable(np.array([[True, True], [True, False]]))


def test_row_counts_must_agree():
    with pytest.raises(ValueError, match="X has 5 rows and y has 4: pass one candidate set for each row of X"):
        check_same_rows(5, 4)
    check_same_rows(4, 4)


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ([3], "row 3"),
        ([5, 5], "row 5"),
        (np.array([12, 3, 8]), "rows 3, 8, 12 (3 in all)"),
        (range(10), "rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (10 in all)"),
        (range(1, 1001), "rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... (1000 in all)"),
    ],
)
def test_rows_text(indices, text):
    assert rows_text(indices) == text


def test_public_names():
    assert all(callable(getattr(labels, name)) for name in labels.__all__)


def test_a_hundred_thousand_lists_are_read_quickly():
    rng = np.random.default_rng(0)
    y = [[f"class {k}" for k in row] for row in rng.integers(0, 100, (100_000, 3)).tolist()]
    start = time.process_time()
    encode(y)
    assert time.process_time() - start < 1.5


# Properties


PROPERTY = settings(deadline=None, max_examples=50)
NAMES = st.one_of(
    st.sets(
        st.text(st.characters(exclude_characters="\0|", exclude_categories=["Cs"]), max_size=5),
        min_size=2,
        max_size=8,
    ),
    st.sets(st.integers(-(2**62), 2**62), min_size=2, max_size=8),
)


@st.composite
def named_sets(draw, min_size=1):
    """Class names in some order, and non-empty proper or full sets of them."""
    names = draw(NAMES.flatmap(lambda s: st.permutations(sorted(s))))
    return names, draw(st.lists(st.sets(st.sampled_from(names), min_size=min_size), min_size=1, max_size=12))


@PROPERTY
@given(named_sets())
def test_decoding_gives_the_sets_back(case):
    names, sets = case
    assert decode(*encode(sets, classes=names)) == sets
    used = set().union(*sets)
    if len(used) > 1:
        candidates, classes = encode([list(s) for s in sets])
        assert classes.tolist() == sorted(used)
        assert decode(candidates, classes) == sets


@PROPERTY
@given(named_sets())
def test_matrices_and_sets_agree(case):
    names, sets = case
    matrix = np.array([[name in s for name in names] for s in sets])
    for y in (sets, matrix, matrix.astype(float), pd.DataFrame(matrix, columns=names)):
        assert_encoded(encode(y, classes=names), matrix, names)
    assert_encoded(encode(pd.DataFrame(matrix, columns=names)), matrix, names)


@PROPERTY
@given(
    named_sets(),
    st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr"]),
    st.sampled_from([bool, int, float]),
)
def test_sparse_and_dense_agree(case, layout, dtype):
    names, sets = case
    matrix = np.array([[name in s for name in names] for s in sets], dtype=dtype)
    for make in (sparse.csr_array, sparse.csr_matrix):
        assert_encoded(encode(make(matrix).asformat(layout), classes=names), matrix, names)


@PROPERTY
@given(named_sets())
def test_the_complement_of_the_complement_is_the_set(case):
    names, sets = case
    candidates, _ = encode(sets, classes=names)
    wrong = [set(names) - s for s in sets]
    assert_encoded(from_complementary(wrong, classes=names), candidates, names)
    assert_encoded(from_complementary(~candidates, classes=names), candidates, names)


@PROPERTY
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=6), min_size=1), st.integers(1, 3))
def test_votes_are_counted(votes, min_votes):
    expected = [[row.count(name) >= min_votes for name in "abc"] for row in votes]
    if all(map(any, expected)):
        assert_encoded(from_votes(votes, classes=["a", "b", "c"], min_votes=min_votes), expected, "abc")
    else:
        empty = [i for i, row in enumerate(expected) if not any(row)]
        with pytest.raises(ValueError, match=re.escape(f"in {rows_text(empty)}, but")):
            from_votes(votes, classes=["a", "b", "c"], min_votes=min_votes)


@PROPERTY
@given(st.lists(st.sets(st.sampled_from(["cat", "dog", "big cow"]), min_size=1), min_size=1))
def test_joined_and_nested_names_agree(sets):
    names = ["dog", "cat", "big cow"]
    candidates, _ = encode(sets, classes=names)
    assert_encoded(encode([" | ".join(s) for s in sets], names, separator="|"), candidates, names)
