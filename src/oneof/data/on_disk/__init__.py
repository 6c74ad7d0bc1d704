"""Tables that do not fit into memory: read once, in pieces, into a file that is mapped."""
