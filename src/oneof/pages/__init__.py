"""HTML pages and SVG figures. Pages receive plain data; who has the data builds it and writes the files."""
