"""``python -m oneof`` is ``oneof``."""

from oneof.cli import main

main()
