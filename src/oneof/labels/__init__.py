"""Read candidate label sets, however they are written, into one boolean matrix."""

from oneof.labels.disambiguation import Disambiguation, decide, disambiguate, posterior
from oneof.labels.encoding import encode, encode_for_model, from_complementary
from oneof.labels.folds import CandidateKFold
from oneof.labels.validation import (
    check_learnable,
    check_same_rows,
    rows_text,
    warn_of_absent,
    warn_of_unlearned,
)
from oneof.labels.votes import from_votes

__all__ = [
    "CandidateKFold",
    "Disambiguation",
    "check_learnable",
    "check_same_rows",
    "decide",
    "disambiguate",
    "encode",
    "encode_for_model",
    "from_complementary",
    "from_votes",
    "posterior",
    "rows_text",
    "warn_of_absent",
    "warn_of_unlearned",
]
