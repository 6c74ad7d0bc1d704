"""Damage that keeps the outer form of a file: headers, archives and checksums fit, what they hold does not."""

import gzip
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

from fuzz.mutate import mutate_bytes, mutate_tree


def mutate_safetensors(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage the header of a safetensors file, or the facts of oneof in it, or the tensors."""
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    kind = chance.randrange(4)
    if kind == 0:
        return mutate_bytes(content, chance, others)
    if kind == 1:
        data = mutate_bytes(data, chance)
        data = data[: len(content) - 8 - size].ljust(len(content) - 8 - size, b"\xff")
    elif kind == 2:
        header = mutate_tree(header, chance)
    else:
        facts = mutate_tree(json.loads(header["__metadata__"]["oneof"]), chance)
        header["__metadata__"]["oneof"] = json.dumps(facts)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def mutate_npz(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage an array in an npz file: its header, its values or its name."""
    if chance.random() < 0.3:
        return mutate_bytes(content, chance, others)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(list(members))
    kind = chance.randrange(6)
    if kind == 0:
        members[chance.choice(("y.npy", "x", "X.npy", "../x.npy"))] = members.pop(name)
    elif kind == 1:
        members[name] = members[chance.choice(list(members))]
    elif kind == 2:
        members[name] = mutate_bytes(members[name], chance)
    else:
        size = struct.unpack_from("<H", members[name], 8)[0]
        header, data = members[name][10 : 10 + size], members[name][10 + size :]
        text = header.decode("latin1").rstrip()
        types = ("<f8", "|b1", "<i8", "<U3", "|S2", "|O", "<c16", "<M8[s]", "|V8", "<f2", ">i4")
        old = text[text.index("'descr': ") + 9 : text.index(", 'fortran")]
        text = text.replace(old, repr(chance.choice(types))) if chance.random() < 0.5 else text
        shapes = ("()", "(1,)", "(0, 3)", "(3, 0)", "(8, 3)", "(24,)", "(2, 2, 2, 3)", "(-1, 3)", f"({2**40}, 3)")
        old = text[text.index("'shape': ") + 9 : text.rindex(")") + 1]
        text = text.replace(old, chance.choice(shapes)) if chance.random() < 0.7 else text
        if chance.random() < 0.2:
            text = mutate_bytes(text.encode("latin1"), chance).decode("latin1")
        new = text.encode("latin1") + b"\n"
        members[name] = members[name][:8] + struct.pack("<H", len(new) & 0xFFFF) + new + data
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member, value in members.items():
            archive.writestr(member, value)
    return file.getvalue()


def mutate_gzip(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage what a gzip file holds, or the file itself; a plain file is damaged as it is."""
    if content[:2] != b"\x1f\x8b" or chance.random() < 0.4:
        return mutate_bytes(content, chance, others)
    return gzip.compress(mutate_bytes(gzip.decompress(content), chance), 1, mtime=0)


def mutate_matlab(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage a variable of a MATLAB file inside its compression, or the file itself."""
    if chance.random() < 0.4:
        return mutate_bytes(content, chance, others)
    head, rest, elements = content[:128], content[128:], []
    while len(rest) >= 8:
        kind, size = struct.unpack_from("<II", rest)
        elements.append((kind, rest[8 : 8 + size]))
        rest = rest[8 + size :]
    at = chance.randrange(len(elements))
    kind, data = elements[at]
    if kind == 15:
        elements[at] = kind, zlib.compress(mutate_bytes(zlib.decompress(data), chance), 1)
    else:
        elements[at] = kind, mutate_bytes(data, chance)
    return head + b"".join(struct.pack("<II", kind, len(data)) + data for kind, data in elements)


def mutate_image(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage an image; in a PNG file sometimes a chunk whose checksum then fits."""
    if not content.startswith(b"\x89PNG") or chance.random() < 0.3:
        return mutate_bytes(content, chance, others)
    rest, chunks = content[8:], []
    while len(rest) >= 12:
        size = struct.unpack_from(">I", rest)[0]
        chunks.append((rest[4:8], rest[8 : 8 + size]))
        rest = rest[12 + size :]
    at = chance.randrange(len(chunks))
    name, data = chunks[at]
    if name == b"IDAT" and chance.random() < 0.5:
        data = zlib.compress(mutate_bytes(zlib.decompress(data), chance), 1)
    else:
        data = mutate_bytes(data, chance)
    chunks[at] = name, data
    return content[:8] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def mutate_json(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage one line of JSON as a tree, or the text."""
    lines = content.splitlines()
    if chance.random() < 0.3 or not lines:
        return mutate_bytes(content, chance, others)
    at = chance.randrange(len(lines))
    try:
        lines[at] = json.dumps(mutate_tree(json.loads(lines[at]), chance)).encode()
    except ValueError:  # it was damaged before
        lines[at] = mutate_bytes(lines[at], chance, others)
    return b"\n".join(lines) + b"\n"


def toml(tree: Any) -> str:
    """Write a tree as TOML, its tables in one line; what TOML cannot hold is left out."""
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int | float):
        return repr(tree)
    if isinstance(tree, dict):
        items = (f"{json.dumps(key)} = {toml(value)}" for key, value in tree.items() if value is not None)
        return "{" + ", ".join(items) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(toml(value) for value in tree if value is not None) + "]"
    return json.dumps(tree)


def toml_file(tree: dict[str, Any]) -> bytes:
    """Write the outermost table of a tree as a TOML file."""
    lines = (f"{json.dumps(key)} = {toml(value)}" for key, value in tree.items() if value is not None)
    return "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
