"""Read candidate label sets, however they are written, into one boolean matrix."""

from oneof.labels.encoding import encode, encode_for_model, from_complementary
from oneof.labels.validation import (
    check_learnable,
    check_same_rows,
    rows_text,
    warn_of_absent,
    warn_of_unlearned,
)
from oneof.labels.votes import from_votes

__all__ = [
    "check_learnable",
    "check_same_rows",
    "encode",
    "encode_for_model",
    "from_complementary",
    "from_votes",
    "rows_text",
    "warn_of_absent",
    "warn_of_unlearned",
]
