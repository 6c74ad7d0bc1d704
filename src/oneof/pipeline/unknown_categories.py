"""Categories that no row had in training: one warning for each column, also of tables that are read in pieces."""

from dataclasses import dataclass

from oneof.io.words import shown, warn
from oneof.labels import rows_text

NAMED = 10  # rows that a warning names


@dataclass
class Unknown:
    """Cells of a column that no row had in training: the first one, its row and some others, and how many."""

    text: str
    rows: list[int]
    number: int

    def joined(self, later: "Unknown", row: int) -> "Unknown":
        """Return these and those of a further piece of the table, which begins with this row."""
        rows = [*self.rows, *(row + each for each in later.rows)][:NAMED]
        return Unknown(self.text or later.text, rows, self.number + later.number)

    def warn(self, column: str) -> None:
        """Say so."""
        where = rows_text(self.rows, self.number)
        found = f"the column {shown(column)} holds {shown(self.text, 60)} in {where}"
        warn(f"{found}, which no row had in training; it counts as none of the categories")
