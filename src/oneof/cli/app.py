"""The application: what every command shares. Each complaint is one line on standard error."""

import ast
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from typer.core import TyperGroup

from oneof import __version__

_UsageError: Any = typer.BadParameter.__base__  # of click, or of typer since it took click in


DataFolder = Annotated[
    Path | None, typer.Option("--data", metavar="FOLDER", help="Where data sets lie, instead of $ONEOF_DATA.")
]


def fold(text: str) -> str:
    """Put a text on one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def note(kind: str, text: str) -> None:
    """Say something on standard error."""
    typer.echo(fold(f"{kind}: {text}"), err=True)


class _OneLineErrors(TyperGroup):
    """Commands whose every complaint is one line on standard error: exit code 2, and 130 after Ctrl-C."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: note("warning", str(message))
            sys.exit(self._run(*args, **kwargs | {"standalone_mode": False}))

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except (KeyboardInterrupt, typer.Abort):
            return 130
        except _UsageError as error:
            see = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            note("error", error.format_message() + see)
        except (ValueError, TypeError, OSError) as error:
            note("error", str(error) or type(error).__name__)
        return 2


app = typer.Typer(
    cls=_OneLineErrors,
    help="Learn classifiers from candidate label sets: the truth is one of these labels.",
    add_completion=False,
    pretty_exceptions_enable=False,
    # Some environments, such as GitHub's, make typer colour even what goes into a file.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"oneof {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def show_grid(header: Sequence[str], rows: list[list[str]]) -> None:
    """Print a table."""
    terminal = sys.stdout.isatty()
    grid = Grid(*header, box=None, pad_edge=False)
    for row in rows:
        grid.add_row(*map(Text, row))  # Text: brackets are no markup here
    Console(force_terminal=terminal, width=None if terminal else 200).print(grid)


def named_values(texts: Sequence[str], example: str) -> dict[str, Any]:
    """Read NAME=VALUE texts."""
    values = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ValueError(f"--set {text!r} has no value; write it as NAME=VALUE, such as {example}")
        values[name] = _literal(value)
    return values


def _literal(text: str) -> Any:
    """Read a Python literal; anything else is a plain string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
