"""What the site adds to the pages in docs/: the API reference, files of the repository, what blocks of code say.

mkdocs calls the functions ``on_...``. Pages stay as they are in the repository, where their links work as well.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from blocks import BLOCK
from reference import GROUPS, pages_of_reference, table_of_reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CACHE = ROOT / "build" / "docs-blocks"
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?(\))")
EXTRA = ("CONTRIBUTING.md", "CHANGELOG.md")  # pages of the repository that the site has whatever links to them
LACKING = "The data set was not at hand when this site was built."
HIDDEN = "---\nsearch: {exclude: true}\n---\n"


# --- files of the repository ------------------------------------------------------------------------------


def _site_path(target: Path) -> str:
    """Return where the site has a file or folder of the repository."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    inside = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        return f"repository/{inside}/index.md"
    return (
        f"repository/{inside}"
        if target.suffix in (".md", ".json", ".jsonl", ".txt")
        else f"repository/{inside}.md"
    )


def _content(target: Path) -> str:
    """Return what the site shows of a file or folder outside docs/."""
    name = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        names = sorted(
            f"{path.name}{'/' * path.is_dir()}" for path in target.iterdir() if path.name[0] not in "._"
        )
        return HIDDEN + f"# {name}/\n\n" + "\n".join(f"- `{name}`" for name in names)
    text = target.read_text(encoding="utf-8")
    if target.suffix in (".md", ".json", ".jsonl", ".txt"):
        return text
    return HIDDEN + f"# {name}\n\n````{target.suffix[1:]}\n{text}\n````\n"


def _outside(page: Path) -> set[Path]:
    """Return the files and folders outside docs/ to which a page links."""
    found = (page.parent / match[2] for match in LINK.finditer(page.read_text(encoding="utf-8")))
    targets = {Path(os.path.normpath(path)) for path in found}
    return {
        path for path in targets if path.exists() and path.is_relative_to(ROOT) and not path.is_relative_to(DOCS)
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the API reference, and what pages link to outside docs/."""
    targets = {ROOT / name for name in EXTRA}
    for page in [*(ROOT / name for name in EXTRA), *DOCS.rglob("*.md")]:
        targets |= _outside(page)
    for target in sorted(targets):
        files.append(File.generated(config, _site_path(target), content=_content(target)))
    for name, text in pages_of_reference().items():
        files.append(File.generated(config, f"api/{name}.md", content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the API reference into the navigation."""
    (section,) = (entry for entry in config.nav or [] if "API reference" in entry)
    pages = [{title: f"api/{name}.md"} for name, (title, _) in GROUPS.items()]
    section["API reference"] = ["api/index.md", *pages]
    return config


def _relink(text: str, page: Path) -> str:
    """Return a page's text with links to where the site has their targets."""
    here = Path(_site_path(page)).parent

    def replaced(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / match[2]))
        if not target.exists():
            return match[0]  # mkdocs says that it is broken
        link = Path(os.path.relpath(_site_path(target), here)).as_posix()
        return f"{match[1]}{link}{match[3] or ''}{match[4]}"

    return LINK.sub(replaced, text)


# --- blocks of code ---------------------------------------------------------------------------------------


def _key(page: Path) -> str:
    """Return a name for what a page's code says: another one when the page or the library changes."""
    digest = hashlib.sha256(page.read_bytes())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _said(page: Path) -> dict[str, Any]:
    """Run the code of a page, or remember what it said."""
    kept = CACHE / f"{page.stem}-{_key(page)}.json"
    if not kept.exists():
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("blocks.py")), str(page)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        )
        if done.returncode:
            raise PluginError(f"{page.relative_to(ROOT)}: {done.stderr}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _with_output(text: str, page: Path) -> str:
    """Return a page's text with what each block said below it, unless the page says so itself."""
    if not BLOCK.search(text):
        return text
    said = iter(_said(page)["said"])

    def replaced(match: re.Match[str]) -> str:
        output = next(said)
        if output is None and match["mark"] != "not run":
            return f'{match[0]}\n\n!!! warning "Not run"\n    {LACKING}\n'
        follows = text[match.end() :].lstrip().startswith("```text")
        if not (output or "").strip() or follows:
            return match[0]
        return f'{match[0]}\n\n``` {{.text .output title="prints"}}\n{output.rstrip()}\n```'

    return BLOCK.sub(replaced, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the Markdown of a page as the site shows it."""
    uri = page.file.src_uri
    if uri.startswith("repository/"):
        source = ROOT / uri.removeprefix("repository/")
        return _relink(markdown, source) if source.suffix == ".md" and source.exists() else markdown
    source = DOCS / uri
    if not source.exists():
        return markdown
    text = _relink(_with_output(markdown, source), source)
    return f"{text}\n{table_of_reference()}\n" if uri == "api/index.md" else text
