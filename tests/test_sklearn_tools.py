"""Tools of scikit-learn, each run for real: they work or do not as docs/scikit-learn.md says.

Every tool is run twice: with plain labels and with a candidate matrix. A tool that the table says not to work must
fail with an error, or do what the table warns of; what the table proposes instead is run as well.
"""

import io
import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  makes the halving searches importable
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import oneof
from oneof import CC
from oneof.metrics import covering_rate

PAGE = (Path(__file__).parent.parent / "docs" / "scikit-learn.md").read_text()
NAMES = np.array(["cat", "cow", "dog"])
LRS = {"lr": [1e-7, 0.1]}
TRUTH = np.arange(60) % 3
rng = np.random.default_rng(7)
X = pd.DataFrame(rng.normal(size=(60, 4)) + 4 * np.eye(3, 4)[TRUTH], columns=list("abcd"))
SETS = rng.random((60, 3)) < 0.3
SETS[np.arange(60), TRUTH] = True
TARGETS = {"plain labels": NAMES[TRUTH], "candidate matrix": SETS}


def model(**settings):
    training = {"network": "linear", "epochs": 30, "batch_size": 20, "lr": 0.1, "schedule": "constant"}
    return CC(**training | {"random_state": 0, "device": "cpu"} | settings)


def truth_like(y):
    """The true labels, named as a model that was fitted on y names them."""
    return TRUTH if y.ndim == 2 else NAMES[TRUTH]


def accuracy(fitted, y):
    return (np.asarray(fitted.predict(X)) == truth_like(y)).mean()


# --- one function for each tool ---------------------------------------------------------------------------


def pipeline(y):
    pipe = make_pipeline(StandardScaler(), model()).fit(X, y, cc__sample_weight=np.ones(60))
    assert pipe.score(X, y) > 0.9
    assert accuracy(pipe, y) > 0.9
    assert not hasattr(pipe, "disambiguate")
    label, _, margin = pipe[-1].disambiguate(pipe[:-1].transform(X), y)
    assert (label == pipe[-1].transduction_).all()
    assert (margin > 0).all()


def feature_union(y):
    union = FeatureUnion([("wide", StandardScaler()), ("narrow", MinMaxScaler())])
    pipe = make_pipeline(union, model()).fit(X, y)
    assert pipe[-1].n_features_in_ == 8
    assert accuracy(pipe, y) > 0.9


def column_transformer(y):
    columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "b"])], remainder="passthrough")
    assert accuracy(make_pipeline(columns, model()).fit(X, y), y) > 0.9


def set_output(y):
    pipe = make_pipeline(StandardScaler(), model()).set_output(transform="pandas").fit(X, y)
    assert pipe[-1].feature_names_in_.tolist() == list("abcd")


def cloning(y):
    fitted = model(lr=0.05).fit(X, y)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "network_")


def pickling(y):
    fitted = model().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def joblib_dump(y):
    fitted, file = model().fit(X, y), io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict_proba(X), fitted.predict_proba(X))


def frozen(y):
    fitted = model().fit(X, y)
    assert FrozenEstimator(fitted).fit(X, y).score(X, y) == fitted.score(X, y)


def splitting(y):
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert model().fit(X_train, y_train).score(X_test, y_test) > 0.8


def cross_val_scores(y):
    assert cross_val_score(model(), X, y, cv=3, error_score="raise").min() > 0.8


def cross_validation(y):
    scoring = {"covering": make_scorer(mean_covering, response_method="predict_proba")} if y.ndim == 2 else None
    found = cross_validate(model(), X, y, cv=3, scoring=scoring, return_train_score=True, error_score="raise")
    assert found["train_covering" if scoring else "train_score"].min() > 0.8


def mean_covering(candidates, probabilities):
    return covering_rate(probabilities, candidates).mean()


def cross_val_predictions(y):
    assert (cross_val_predict(model(), X, y, cv=3) == truth_like(y)).mean() > 0.9
    assert cross_val_predict(model(), X, y, cv=3, method="predict_proba").shape == (60, 3)


def grid_search(y):
    search = GridSearchCV(model(), LRS, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"lr": 0.1}
    assert len(search.best_estimator_.disambiguate(X, y).label) == 60


def randomized_search(y):
    search = RandomizedSearchCV(model(), LRS, n_iter=2, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"lr": 0.1}


def halving_search(y):
    search = HalvingGridSearchCV(model(), LRS, cv=2, min_resources=30, error_score="raise").fit(X, y)
    assert search.best_params_ == {"lr": 0.1}


def learning_curves(y):
    sizes, _, scores = learning_curve(model(), X, y, cv=3, train_sizes=[0.5, 1.0], error_score="raise")
    assert sizes.tolist() == [20, 40]
    assert scores.min() > 0.7


def validation_curves(y):
    _, scores = validation_curve(
        model(), X, y, param_name="lr", param_range=[1e-7, 0.1], cv=3, error_score="raise"
    )
    assert scores[1].mean() > scores[0].mean()


def permutation_test(y):
    score, shuffled, _ = permutation_test_score(model(), X, y, cv=2, n_permutations=3, random_state=0)
    assert score > shuffled.max()


def importance(y):
    means = permutation_importance(model().fit(X, y), X, y, n_repeats=2, random_state=0).importances_mean
    assert means[:3].min() > means[3]  # the last column is noise


def dependence(y):
    assert partial_dependence(model().fit(X, y), X, ["a"], grid_resolution=5)["average"].shape == (3, 5)


def sequential_selection(y):
    selector = SequentialFeatureSelector(model(), n_features_to_select=2, cv=2).fit(X, y)
    assert "d" not in selector.get_feature_names_out()  # it is noise


def metadata_routing(y):
    weight = np.tile([1.0, 0.0], 30)
    with sklearn.config_context(enable_metadata_routing=True):
        weighed = model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_val_score(weighed, X, y, cv=KFold(3), params={"sample_weight": weight}, error_score="raise")
        alone = cross_val_score(model(), X[::2], y[::2], cv=KFold(3))
        assert np.allclose(found, alone, atol=0.1)  # rows of weight 0 neither train nor judge
        stopping = model(patience=2, epochs=30).set_fit_request(X_val=True, y_val=True)
        pipe = Pipeline([("scale", MinMaxScaler()), ("cc", stopping)], transform_input=["X_val"])
        history = pipe.fit(X, y, X_val=X[:20], y_val=y[:20])[-1].history_
        assert "validation" in " ".join(history)


def select_from_model(y):
    SelectFromModel(model()).fit_transform(X, y)


def feature_elimination(y):
    RFE(model()).fit(X, y)


def scoring_accuracy(y):
    assert cross_val_score(model(), X, y, cv=3, scoring="accuracy", error_score="raise").min() > 0.9


def scoring_f1(y):
    assert cross_val_score(model(), X, y, cv=3, scoring="f1_macro", error_score="raise").min() > 0.9


def scoring_log_loss(y):
    return -cross_val_score(model(), X, y, cv=3, scoring="neg_log_loss", error_score="raise").mean()


def stratified(y):
    assert cross_val_score(model(), X, y, cv=StratifiedKFold(3), error_score="raise").min() > 0.9


def fit_and_predict(tool):
    def run(y):
        assert accuracy(tool().fit(X, y), y) > 0.9

    return run


def voting(make):
    return VotingClassifier([("one", make()), ("two", make(random_state=1))], voting="soft")


def stacking(make):
    return StackingClassifier([("one", make()), ("two", make(random_state=1))], cv=3)


def calibrated(make):
    return CalibratedClassifierCV(make(), cv=3)


def several_labels(tool):
    """A tool that takes a matrix for several true labels of each row."""

    def run(y):
        return np.asarray(tool().fit(X, y).predict(X))

    return run


ONE_LABEL = r"1d array|1-d array|multilabel|Multilabel"  # scikit-learn's words for y with several columns
IMPORTANCES = "coef_.*feature_importances_"
WORKS = (None, None)
NEEDS_LABELS = (None, ONE_LABEL)
# What runs the tool, and the error with plain labels and with a candidate matrix; None where it works.
TOOLS = {
    "Pipeline": (pipeline, *WORKS),
    "FeatureUnion": (feature_union, *WORKS),
    "ColumnTransformer": (column_transformer, *WORKS),
    "set_output": (set_output, *WORKS),
    "clone": (cloning, *WORKS),
    "pickle": (pickling, *WORKS),
    "joblib.dump": (joblib_dump, *WORKS),
    "FrozenEstimator": (frozen, *WORKS),
    "train_test_split": (splitting, *WORKS),
    "cross_val_score": (cross_val_scores, *WORKS),
    "cross_validate": (cross_validation, *WORKS),
    "cross_val_predict": (cross_val_predictions, *WORKS),
    "GridSearchCV": (grid_search, *WORKS),
    "RandomizedSearchCV": (randomized_search, *WORKS),
    "HalvingGridSearchCV": (halving_search, *WORKS),
    "learning_curve": (learning_curves, *WORKS),
    "validation_curve": (validation_curves, *WORKS),
    "permutation_test_score": (permutation_test, *WORKS),
    "permutation_importance": (importance, *WORKS),
    "partial_dependence": (dependence, *WORKS),
    "SequentialFeatureSelector": (sequential_selection, *WORKS),
    "set_fit_request": (metadata_routing, *WORKS),
    "SelectFromModel": (select_from_model, IMPORTANCES, IMPORTANCES),
    "RFE": (feature_elimination, IMPORTANCES, IMPORTANCES),
    'scoring="accuracy"': (scoring_accuracy, *NEEDS_LABELS),
    '"f1_macro"': (scoring_f1, *NEEDS_LABELS),
    "StratifiedKFold": (stratified, *NEEDS_LABELS),
    "CalibratedClassifierCV": (fit_and_predict(lambda: calibrated(model)), *NEEDS_LABELS),
    "VotingClassifier": (fit_and_predict(lambda: voting(model)), *NEEDS_LABELS),
    "StackingClassifier": (fit_and_predict(lambda: stacking(model)), *NEEDS_LABELS),
    "BaggingClassifier": (fit_and_predict(lambda: BaggingClassifier(model(), n_estimators=2)), *NEEDS_LABELS),
    "AdaBoostClassifier": (fit_and_predict(lambda: AdaBoostClassifier(model(), n_estimators=2)), *NEEDS_LABELS),
    "OneVsOneClassifier": (fit_and_predict(lambda: OneVsOneClassifier(model())), *NEEDS_LABELS),
    "OutputCodeClassifier": (
        fit_and_predict(lambda: OutputCodeClassifier(model(), random_state=0)),
        *NEEDS_LABELS,
    ),
}
# Tools with tests of their own below: with a candidate matrix these go on without a word, and do something else.
OTHERS = {
    '"neg_log_loss"': ("yes", "**wrong**"),
    "OneVsRestClassifier": ("yes", "**wrong**"),
    "MultiOutputClassifier": ("no", "**wrong**"),
    "ClassifierChain": ("no", "**wrong**"),
    "TransformedTargetRegressor": ("no", "no"),
}


def rows_of_the_page():
    """The table of the page: for each tool in backquotes the cells about plain labels and candidate matrices."""
    table = PAGE.partition("| of scikit-learn |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return {tool: (plain, matrix) for tools, plain, matrix, _ in rows for tool in re.findall("`([^`]+)`", tools)}


@pytest.mark.parametrize("form", TARGETS)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.filterwarnings("ignore::UserWarning:sklearn")
def test_tool(tool, form):
    run, *errors = TOOLS[tool]
    error = errors[list(TARGETS).index(form)]
    if error is None:
        run(TARGETS[form])
    else:
        with pytest.raises((ValueError, NotImplementedError), match=error):
            run(TARGETS[form])


def test_the_page_lists_these_tools_and_no_others():
    expected = {tool: tuple("no" if error else "yes" for error in errors) for tool, (_, *errors) in TOOLS.items()}
    assert rows_of_the_page() == expected | OTHERS


# --- what goes wrong in silence, as the table warns --------------------------------------------------------


def test_log_loss_takes_a_matrix_for_several_true_labels():
    assert scoring_log_loss(TARGETS["plain labels"]) < 0.3
    assert scoring_log_loss(SETS) > 1  # every candidate counts as true


@pytest.mark.parametrize("tool", [OneVsRestClassifier, MultiOutputClassifier, ClassifierChain])
def test_multilabel_tools_predict_candidate_sets(tool):
    predicted = several_labels(lambda: tool(model()))(SETS)
    assert predicted.shape == (60, 3)
    assert not (predicted.sum(1) == 1).all()  # sets, not labels


def test_multilabel_tools_with_plain_labels():
    assert fit_and_predict(lambda: OneVsRestClassifier(model()))(TARGETS["plain labels"]) is None
    for tool in (MultiOutputClassifier, ClassifierChain):
        with pytest.raises((ValueError, IndexError)):
            tool(model()).fit(X, TRUTH)


def test_a_transformed_regressor_scores_class_numbers_as_if_they_were_amounts():
    with pytest.raises(ValueError, match="numeric"):
        TransformedTargetRegressor(model()).fit(X, TARGETS["plain labels"])
    with pytest.raises(ValueError, match="number of output"):
        TransformedTargetRegressor(model()).fit(X, SETS).score(X, SETS)


def test_accuracy_of_a_matrix_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="Scoring failed"):
        assert np.isnan(cross_val_score(model(), X, SETS, cv=3, scoring="accuracy")).all()


# --- what to do instead, as the table says -----------------------------------------------------------------


def test_lists_of_names_are_encoded_first():
    lists = [NAMES[row].tolist() for row in SETS]
    with pytest.raises(ValueError, match="multi-label"):
        cross_val_score(model(), X, lists, cv=3)
    matrix, _ = oneof.encode(lists)
    assert cross_val_score(model(), X, matrix, cv=3).min() > 0.8


def test_rows_sorted_by_class_are_kept_in_balance():
    order = np.argsort(TRUTH, kind="stable")
    X_sorted, sets = X.iloc[order].reset_index(drop=True), SETS[order]
    unlucky = cross_val_score(model(), X_sorted, sets, cv=3).mean()
    balanced = cross_val_score(model(), X_sorted, sets, cv=oneof.CandidateKFold(3))
    assert balanced.mean() > unlucky
    assert balanced.min() > 0.8


def test_true_labels_judge_where_they_are_known():
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = oneof.SCORERS["accuracy"].set_score_request(truth=True)
        search = GridSearchCV(model(), LRS, cv=3, scoring=scorer, error_score="raise").fit(X, SETS, truth=TRUTH)
    assert search.best_params_ == {"lr": 0.1}
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("tool", [calibrated, voting, stacking])
def test_models_fitted_on_sets_are_frozen_and_combined_on_checked_rows(tool):
    checked = slice(0, 30)

    def make(**settings):
        return FrozenEstimator(model(**settings).fit(X, SETS))

    combined = tool(make).fit(X[checked], TRUTH[checked])
    assert (combined.predict(X) == TRUTH).mean() > 0.9
    assert combined.predict_proba(X).shape == (60, 3)


def test_bagging_by_fit_together():
    draws = [rng.integers(60, size=60) for _ in range(3)]
    models = [model(random_state=seed) for seed in range(3)]
    oneof.fit_together(models, [{"X": X.iloc[rows], "y": SETS[rows]} for rows in draws])
    probabilities = np.mean([each.predict_proba(X) for each in models], axis=0)
    assert (probabilities.argmax(1) == TRUTH).mean() > 0.9


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_importances_of_a_linear_network(y):
    selector = SelectFromModel(
        model(), importance_getter=lambda fitted: fitted.network_.head.weight.detach().numpy()
    ).fit(X, y)
    assert "d" not in selector.get_feature_names_out()
