"""The application: what every command shares. Each complaint is one line on standard error."""

import ast
import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from oneof import __version__
from oneof.cli.output import note, reset, wanted
from oneof.errors import InputError
from oneof.io.words import shown

_UsageError: Any = typer.BadParameter.__base__  # of click, or of typer since it took click in


DataFolder = Annotated[
    Path | None, typer.Option("--data", metavar="FOLDER", help="Where data sets lie, instead of $ONEOF_DATA.")
]


class _OneLineErrors(TyperGroup):
    """Commands whose every complaint is one line on standard error: exit code 2, and 130 after Ctrl-C."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        reset()
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
        except (ValueError, TypeError, OSError, ArithmeticError) as error:  # the last: a training that diverged
            note("error", str(error) or type(error).__name__)
        return 2


class _Command(TyperCommand):
    """A command that refuses a repeated option of one value; otherwise the last value would win in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any("--json" in each.opts and not getattr(each, "is_flag", True) for each in self.params):
            args = _with_value("--json", args)
        parser = self.make_parser(ctx)
        _, _, given = parser.parse_args(args=[*args])
        for parameter, times in Counter(given).items():
            option: Any = parameter
            if times > 1 and not (option.param_type_name == "argument" or option.is_flag or option.multiple):
                collecting = copy(option)
                collecting.multiple = True
                collecting.add_to_parser(parser, ctx)  # in the place of the other
                values = parser.parse_args(args=[*args])[0][option.name]
                ctx.fail(_given_several_times(max(option.opts, key=len), values))
        return super().parse_args(ctx, args)


def _with_value(option: str, args: list[str]) -> list[str]:
    """Give an option whose value may be left out the value ``-``, standard output."""
    values = [*args, "--"][1:]
    return [
        part
        for arg, following in zip(args, values, strict=True)
        for part in ([arg, "-"] if arg == option and following.startswith("--") else [arg])
    ]


class _Application(typer.Typer):
    """Commands that are all of the same class, and have the options that say how results are printed."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        register = super().command(*args, cls=_Command, **kwargs)

        def add(function: Any) -> Any:
            register(_with_switches(function))
            return function

        return add


_SWITCHES = {
    "in_json": Annotated[bool, typer.Option("--json", help="Print the results as JSON.")],
    "quietly": Annotated[bool, typer.Option("--quiet", help="Show no progress.")],
}


def _with_switches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a command with the options of all; one may have a ``--json`` of its own."""
    signature = inspect.signature(function)
    names = [name for name in _SWITCHES if name != "in_json" or "json_out" not in signature.parameters]

    @wraps(function)
    def command(*, in_json: bool = False, quietly: bool = False, **options: Any) -> Any:
        wanted.json, wanted.quiet = wanted.json or in_json, quietly
        return function(**options)

    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=False, annotation=_SWITCHES[name]) for name in names]
    command.__annotations__ = function.__annotations__ | {name: _SWITCHES[name] for name in names}
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *added]
    )
    return command


def _given_several_times(option: str, values: Sequence[str]) -> str:
    *first, last = (shown(value) for value in values)
    return f"{option} is given {len(values)} times, as {', '.join(first)} and {last}; give it once"


app = _Application(
    cls=_OneLineErrors,
    help="Learn classifiers from candidate label sets: the truth is one of these labels.",
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


def named_values(texts: Sequence[str], example: str) -> dict[str, Any]:
    """Read NAME=VALUE texts."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            lacks = "value" if name else "name"
            raise InputError(f"--set {text!r} has no {lacks}; write it as NAME=VALUE, such as {example}")
        if name in values:
            raise InputError(_given_several_times(f"--set {name}", [values[name], value]))
        values[name] = value
    return {name: _literal(value) for name, value in values.items()}


def _literal(text: str) -> Any:
    """Read a Python literal; anything else is a plain string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
