"""The pages of the API reference: every public name of `oneof` on one of them, with the words of its docstring."""

import oneof

PREDICTING = ["predict", "predict_proba", "predict_top", "score", "disambiguate"]
SHARED = ["fit", *PREDICTING, "save", "card", "to_onnx", "fast"]
GROUPS: dict[str, tuple[str, list[str]]] = {
    "labels": (
        "Candidate sets and votes",
        ["encode", "from_votes", "vote_counts", "from_complementary", "disambiguate", "WeightedSets", "Votes"],
    ),
    "choosing": ("Choosing and judging", ["compare", "resolve", "outside_rate", "CandidateKFold", "SCORERS"]),
    "fitting": ("Fitting and keeping", ["fit_together", "fit_with_workers", "load_model", "METHODS"]),
    "tables": ("Tables and pipelines", ["TableEncoder", "Pipeline", "make_pipeline"]),
    "data": ("Data", ["load_dataset", "load_images", "PartialLabels", "open_table", "embed"]),
    "exchange": (
        "Other tools and review",
        ["read_annotations", "write_annotations", "convert", "Annotations", "apply_decisions"],
    ),
    "any": ("Any classifier", ["EMClassifier"]),
    **{method.__name__: (method.__name__, [method.__name__]) for method in oneof.METHODS.values()},
}
LISTS = {"METHODS": "Methods by their names on the command line", "SCORERS": "Scorers for `scoring=` by name"}


def _entry(name: str) -> str:
    value = getattr(oneof, name)
    if name in LISTS:
        keys = ", ".join(f"`{key}`" for key in value)
        return f"## `oneof.{name}` {{ #oneof.{name} }}\n\n{LISTS[name]}: {keys}.\n"
    lines = [f"::: oneof.{name}"]
    if isinstance(value, type):
        lines += ["    options:", "      inherited_members: true"]
        if hasattr(value, "predict_proba"):
            own = [key for key, member in vars(value).items() if callable(member) and key[0] != "_"]
            shared = [key for key in SHARED if hasattr(value, key)]
            lines.append(f"      members: {sorted({*shared, *own} - {'start', 'step'})}")
    return "\n".join(lines) + "\n"


def pages_of_reference() -> dict[str, str]:
    """Return the text of each page by its name."""
    listed = [name for _, names in GROUPS.values() for name in names]
    if sorted(listed) != sorted(oneof.__all__):
        raise ValueError(f"the reference and oneof.__all__ differ by {sorted({*listed} ^ {*oneof.__all__})}")
    return {page: f"# {title}\n\n" + "\n".join(map(_entry, names)) for page, (title, names) in GROUPS.items()}


def table_of_reference() -> str:
    """Return the table of contents of the reference, with a link to each page and each name."""
    rows = [
        f"| [{title}]({page}.md) | {', '.join(f'[`{name}`]({page}.md#oneof.{name})' for name in names)} |"
        for page, (title, names) in GROUPS.items()
    ]
    return "\n".join(["| page | holds |", "| --- | --- |", *rows])
