"""numpydoc's validation of every public name: ``python docs/tools/docstring_check.py`` prints what is wrong.

What it would have besides is left out on purpose: a "See Also" everywhere, a longer summary where one line says it
all, and tables of parameters of methods whose one sentence names them.
"""

import sys
from collections.abc import Iterator

from numpydoc.validate import validate

import oneof

NOWHERE = {"SA01", "ES01"}
OF_CLASSES = {"PR01", "PR03"}  # parameters are fields, which are inherited, in the order of the base class
OF_METHODS = {"EX01", "PR01", "RT01", "YD01"}
NAMED_BY_ITSELF = {"PR07", "PR08"}  # a description may begin with a name in code, or a parameter be scikit-learn's


def public() -> Iterator[tuple[str, set[str]]]:
    """Yield each public name with the checks that it need not pass."""
    for name in oneof.__all__:
        value = getattr(oneof, name)
        if isinstance(value, type):
            yield f"oneof.{name}", NOWHERE | NAMED_BY_ITSELF | OF_CLASSES
            own = [key for key, member in vars(value).items() if key[0] != "_" and callable(member)]
            yield from ((f"oneof.{name}.{key}", NOWHERE | NAMED_BY_ITSELF | OF_METHODS) for key in own)
        elif callable(value):
            yield f"oneof.{name}", NOWHERE


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    wrong = [
        f"{name}: {code} {message}"
        for name, left_out in public()
        for code, message in validate(name)["errors"]
        if code not in left_out
    ]
    print("\n".join(wrong) or "docstrings of all public names are as numpydoc has them")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
