"""Command that writes a model for other tools: ``oneof export``."""

from pathlib import Path
from typing import Annotated

import typer

from oneof.cli.app import app
from oneof.cli.options import ModelPath
from oneof.cli.output import fold, give, say
from oneof.errors import InputError


@app.command()
def export(
    model: ModelPath,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The .onnx file to write.")],
) -> None:
    """Write the classifier with its scaler as an ONNX file, which runs without torch and oneof."""
    from oneof.cli.model_tables import load
    from oneof.data import tables
    from oneof.estimator import PartialLabelClassifier

    if target.suffix.lower() != ".onnx":
        raise InputError(
            f"OUT is {str(target)!r}, but models are exported as ONNX; name a file such as model.onnx"
        )
    tables.check_target(target, [model], table=False)
    fitted = load(model)
    if not isinstance(fitted, PartialLabelClassifier):
        raise InputError(
            f"{str(model)!r} holds a model of type {type(fitted).__name__}, but ONNX takes methods with a network "
            "and no steps before them; fit one, such as --method idgp, on a table of numbers"
        )
    fitted.to_onnx(target)
    images = fitted.input_shape_
    shape = [fitted.n_features_in_] if images is None else [*images[1:], images[0]]
    rows = f"X {'float64' if images is None else 'float32'} (n, {', '.join(map(str, shape))})"
    say(fold(f"{target}: {rows} -> probabilities (n, {len(fitted.classes_)})"))
    give({"input": [None, *shape], "classes": len(fitted.classes_), "out": target})
