"""Plans that come with the library, known by name: in a checkout they are in ``benchmarks/``."""

from pathlib import Path

from oneof.io.words import close_names, join_first, shown

__all__ = ["find_plan", "published_plans"]

_PACKED = Path(__file__).with_name("plans")  # where the wheel has them; pyproject.toml says which files go there
_NO_PLANS = ("paper", "settings")  # numbers that papers print and settings that authors published, in files beside


def published_plans() -> dict[str, Path]:
    """Return the files of the plans that come with the library, by name."""
    folder = _PACKED if _PACKED.is_dir() else Path(__file__).parents[3] / "benchmarks"
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.stem not in _NO_PLANS}


def find_plan(path: Path) -> Path:
    """Return the file of a plan: the path itself or, where no file is there, the published plan of that name."""
    if path.is_file() or path.suffix or path.name != str(path):
        return path
    plans = published_plans()
    if path.name in plans or path.exists():  # the latter is no file, which its reader says
        return plans.get(path.name, path)
    close = " or ".join(map(repr, close_names(path.name, plans)))
    fix = (
        f"did you mean {close}?" if close else f"name a file, or a plan that comes with oneof: {join_first(plans)}"
    )
    raise FileNotFoundError(f"there is no plan {shown(path)}; {fix}")
