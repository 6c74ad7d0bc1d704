"""Methods of other packages, by entry points of the group ``oneof.methods``; loaded when they are asked for."""

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from oneof.errors import InputError, KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import reason, shown, warn

GROUP = "oneof.methods"


@cache
def installed(names: frozenset[str], class_names: frozenset[str]) -> dict[str, type[PartialLabelClassifier]]:
    """Return the methods of other packages by name, without those that cannot be used; these are warned of, once.

    ``names`` and ``class_names`` are taken by methods of ours.
    """
    found: dict[str, type[PartialLabelClassifier]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        taken = names | found.keys()
        taken_classes = class_names | {method.__name__ for method in found.values()}
        try:
            found[point.name] = _method(point, taken, taken_classes)
        except Exception as error:  # whatever a package of others does when it is imported
            package = point.dist.name if point.dist is not None else "a package"
            warn(
                f"the method {shown(point.name, 60)} of {shown(package, 60)} is left out ({type(error).__name__}: "
                f"{reason(error)}); repair or uninstall the package"
            )
    return found


def _method(
    point: EntryPoint, taken: Collection[str], taken_classes: Collection[str]
) -> type[PartialLabelClassifier]:
    if point.name != point.name.lower() or not point.name.replace("-", "_").isidentifier():
        raise InputError("its name must be one word in lower case")
    if point.name in taken:
        raise InputError("there is a method of this name already")
    method = point.load()
    if not (isinstance(method, type) and issubclass(method, PartialLabelClassifier)):
        raise KindError(f"{shown(point.value)} is no class made from oneof.estimator.PartialLabelClassifier")
    if method.__name__ in taken_classes:  # by which files and ledgers know it
        raise InputError(f"there is a class of the name {method.__name__} already")
    return method
