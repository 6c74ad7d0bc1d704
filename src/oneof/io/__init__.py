"""Files that are whole or not there, and progress on a terminal."""
