"""Read candidate label sets, however they are written, into one boolean matrix, or one of weights."""

from oneof.labels.disambiguation import Disambiguation, decide, disambiguate, posterior
from oneof.labels.encoding import (
    encode,
    encode_for_model,
    encode_sets,
    encode_sets_for_model,
    encode_weights,
    from_complementary,
)
from oneof.labels.folds import CandidateKFold
from oneof.labels.named_sets import NamedSets
from oneof.labels.sparse_sets import SparseSets, dense_form, most_likely
from oneof.labels.validation import (
    check_learnable,
    check_same_rows,
    rows_text,
    warn_of_absent,
    warn_of_unlearned,
)
from oneof.labels.votes import Votes, from_votes, vote_counts
from oneof.labels.weighted import WeightedSets

__all__ = [
    "CandidateKFold",
    "Disambiguation",
    "NamedSets",
    "SparseSets",
    "Votes",
    "WeightedSets",
    "check_learnable",
    "check_same_rows",
    "decide",
    "dense_form",
    "disambiguate",
    "encode",
    "encode_for_model",
    "encode_sets",
    "encode_sets_for_model",
    "encode_weights",
    "from_complementary",
    "from_votes",
    "most_likely",
    "posterior",
    "rows_text",
    "vote_counts",
    "warn_of_absent",
    "warn_of_unlearned",
]
