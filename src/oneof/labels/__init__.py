"""Read candidate label sets, however they are written, into one boolean matrix."""

from oneof.labels.encoding import encode, from_complementary
from oneof.labels.validation import check_learnable, check_same_rows, rows_text
from oneof.labels.votes import from_votes

__all__ = ["check_learnable", "check_same_rows", "encode", "from_complementary", "from_votes", "rows_text"]
