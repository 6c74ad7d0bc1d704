"""HTML pages: one frame, one chart module, three pages that receive plain data."""
