"""Downloads with pooch: only files whose checksum is known, and never a part of a file."""

import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from oneof.data.catalogue import Archive, Dataset, File
from oneof.errors import InputError
from oneof.io.files import beside, remove_leftovers, replacing
from oneof.io.progress import Display
from oneof.io.words import reason, shown

TIMEOUT = 30.0  # seconds in which a server must send something
_CHUNK = 2**18
_LONGEST_REASON = 200  # characters, which two checksums fit into


def fetch(dataset: Dataset, missing: Sequence[File], folder: Path) -> None:
    """Download missing files of a data set; an error says which file is missing and where to get it.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    missing : sequence of File
        Its files that are not there; at least one.
    folder : Path
        The folder under which the files go.
    """
    absent = f"there is no file {shown(folder / missing[0].path)}"
    if not missing[0].sha256:
        raise FileNotFoundError(
            f"{absent}, and it is not downloaded since no checksum of it is known; get it from {dataset.source} "
            "and put it there"
        )
    try:
        import pooch  # noqa: F401, PLC0415 - pooch is optional
    except ImportError:
        urls = dataset.archive.urls if dataset.archive else missing[0].urls
        raise FileNotFoundError(
            f"{absent}, and pooch, which downloads it, is missing; pip install oneof[data], or get the file from "
            f"{' or '.join(urls)} and put it there"
        ) from None
    if dataset.archive:
        _fetch_archive(dataset.archive, missing, folder)
        return
    for file in missing:
        path = folder / file.path
        with _new_folder(path.parent), replacing(path) as part:
            _try_all(file.urls, path, partial(_download, part=part, size=file.size, sha256=file.sha256))


def remove_archive(dataset: Dataset, folder: Path) -> None:
    """Delete the archive of a download that was killed when all files had been taken out of it."""
    if dataset.archive:
        remove_leftovers(_archive_path(dataset.archive, folder))


def digest(path: Path, algorithm: str) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _fetch_archive(archive: Archive, missing: Sequence[File], folder: Path) -> None:
    """Download an archive, take the missing files out of it, and delete it."""
    with _new_folder(folder), beside(_archive_path(archive, folder)) as part:

        def attempt(url: str) -> None:
            _download(url, part, archive.size, md5=archive.md5)
            _unpack(part, missing, folder)

        _try_all(archive.urls, folder / missing[0].path, attempt)


def _archive_path(archive: Archive, folder: Path) -> Path:
    return folder / archive.urls[0].rpartition("/")[2]


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Make a folder; when the block fails, remove again what was made and is still empty."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        _make_folder(folder)
        yield
    except BaseException:
        with suppress(OSError):  # another download may have put a file there
            for each in made:
                each.rmdir()
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"the folder {shown(folder)} for downloads cannot be made ({error.strerror}); pass another as root "
            "or set ONEOF_DATA"
        ) from None


def _try_all(urls: Sequence[str], path: Path, attempt: Callable[[str], None]) -> None:
    """Try one address after the other until one works."""
    failures = []
    for url in urls:
        try:
            return attempt(url)
        except (OSError, ValueError, EOFError, tarfile.TarError, zlib.error) as error:
            failures.append(f"{url}: {_reason(error)}")
    raise FileNotFoundError(
        f"there is no file {shown(path)}, and its download failed ({'; '.join(failures)}); try again, or get it "
        "elsewhere and put it there"
    )


def _reason(error: Exception) -> str:
    """Say in a few words why a download failed."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    if "timed out" in str(error):
        return f"no answer in {TIMEOUT:g} s"
    words = {"ConnectionError": "no connection", "ChunkedEncodingError": "the connection broke"}
    return words.get(type(error).__name__) or reason(error, _LONGEST_REASON)


def _download(url: str, part: Path, size: int, **checksum: str) -> None:
    """Write what an address sends to a path; more than ``size`` bytes or another checksum are an error."""
    import pooch  # noqa: PLC0415 - pooch is optional

    with Meter(f"{url.rsplit('/', 1)[-1]} from {url.split('/')[2]}", size) as meter:
        download = pooch.HTTPDownloader(
            progressbar=_SizeLimit(part, size, meter),
            chunk_size=_CHUNK,
            timeout=TIMEOUT,
            headers={"Accept-Encoding": "identity"},
            hooks={"response": _drop_encoding},
        )
        download(url, str(part), None)
    for algorithm, expected in checksum.items():
        if (found := digest(part, algorithm)) != expected:
            raise InputError(f"it sends a file with the {algorithm} checksum {found}, not {expected}")


def _drop_encoding(response: Any, **_: Any) -> None:
    """Drop the header by which some servers declare a .gz file as encoded: the client would decompress it."""
    response.raw.headers.pop("Content-Encoding", None)


class _SizeLimit:
    """The progress bar that pooch calls; it also stops a server that sends more than was published."""

    total = 0  # pooch sets it from headers, which may be wrong

    def __init__(self, part: Path, size: int, meter: "Meter") -> None:
        self._part, self._size, self._meter = part, size, meter

    def update(self, _: int) -> None:
        """Show how many bytes have arrived."""
        done = self._part.stat().st_size
        if done > self._size:
            raise InputError(f"it sends more than {self._size} bytes")
        self._meter.show(done)

    def reset(self) -> None:
        """Do nothing: `update` looks at the file itself."""

    def close(self) -> None:
        """Do nothing: the meter is closed where it was opened."""


def _unpack(archive: Path, files: Sequence[File], folder: Path) -> None:
    """Take files out of an archive: regular members of just these names, with the published checksums."""
    wanted = {file.path: file for file in files}
    most = max(file.size for file in files)
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if member.size > most:
                raise InputError(f"{shown(member.name)} in the archive has {member.size} bytes, more than {most}")
            if member.name not in wanted:
                continue
            file = wanted.pop(member.name)
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise InputError(f"{shown(member.name)} in the archive is no regular file")
            with _new_folder((folder / file.path).parent), replacing(folder / file.path) as part:
                with part.open("wb") as target:
                    shutil.copyfileobj(content, target)
                if (found := digest(part, "sha256")) != file.sha256:
                    raise InputError(f"{shown(member.name)} in the archive has the sha256 checksum {found}")
            if not wanted:
                return
    raise InputError(f"{next(iter(wanted))!r} is not in the archive")


class Meter(Display):
    """Progress on standard error: a bar on a terminal, up to ten plain lines elsewhere."""

    def __init__(self, text: str, total: int, visible: bool = True) -> None:
        super().__init__(text, total, visible)
        self._text, self._total, self._tenths = text, total, 0

    def show(self, done: int) -> None:
        """Show that ``done`` of the total are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif self._visible and (tenths := 10 * done // self._total) > self._tenths:
            self._tenths = tenths
            self._say(f"{self._text}: {10 * tenths} %")
