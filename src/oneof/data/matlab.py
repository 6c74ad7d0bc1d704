"""Matrices of real numbers from MATLAB 5 files; broken files, on which scipy.io can crash, raise ValueError.

A file is a header of 128 bytes followed by elements. An element is the type and the length of its data, four bytes
each, and the data, padded to a multiple of eight bytes. In the short form, type and length have two bytes each,
and up to four bytes of data follow. A variable is an element that holds elements (flags, dimensions, name,
values), or a compressed (deflated) element of this kind.
"""

import math
import struct
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.errors import InputError

_HEADER = 128
_MAGIC = b"\x00\x01IM"  # ends the header: version 5, little-endian
_NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
_VARIABLE, _DEFLATED = 14, 15  # types of elements
_SPARSE, _DENSE = 5, range(6, 16)  # classes of variables
_COMPLEX = 0x0800  # a flag
_HEAD = 512  # bytes at the start of a variable, which hold flags, dimensions and name
_MOST_VALUES = 2**26  # the largest published matrix has 2**22.3


def read_matrices(content: bytes, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the wanted variables that are matrices of real numbers, sparse ones as dense arrays.

    Parameters
    ----------
    content : bytes
        The content of the file.
    wanted : collection of str
        The names of the variables.

    Returns
    -------
    dict of arrays
        Of the type in which the values are stored: MATLAB writes whole floats as bytes.
    """
    if content[:_HEADER][-4:] != _MAGIC:
        raise InputError("it is not of MATLAB version 5; save it there with `save -v7`")
    file, found = _Elements(memoryview(content)[_HEADER:]), {}
    while file.rest:
        kind, data = file.next()
        if kind not in (_VARIABLE, _DEFLATED):
            raise InputError(f"it has an element of the unknown type {kind}")
        head = _inflated(data, _HEAD) if kind == _DEFLATED else data
        variable = _Elements(head)
        flags = int(variable.numbers()[0])
        if flags & 0xFF not in (_SPARSE, *_DENSE):
            continue
        shape, name = variable.numbers().tolist(), bytes(variable.next()[1]).decode("latin1")
        if name not in wanted:
            continue
        if flags & _COMPLEX or len(shape) != 2 or min(shape) < 1 or math.prod(shape) > _MOST_VALUES:
            raise InputError(f"its {name} has shape {shape}, but must be a matrix of 1 to 2**26 real numbers")
        if kind == _DEFLATED:  # inflate again, now to the end
            variable = _Elements(_inflated(data, _most_bytes(*shape))[len(head) - len(variable.rest) :])
        found[name] = (_sparse if flags & 0xFF == _SPARSE else _dense)(variable, *shape)
    return found


class _Elements:
    """Reads one element after the other; an element that is cut off is an error."""

    def __init__(self, data: memoryview) -> None:
        self.rest = data

    def next(self) -> tuple[int, memoryview]:
        """Return the type and the data of the next element."""
        if len(self.rest) < 8:
            raise InputError("it is cut off")
        kind, size = struct.unpack_from("<II", self.rest)
        start, end = 8, 8 + size + (-size % 8 if kind != _DEFLATED else 0)
        if kind >> 16:
            kind, size, start, end = kind & 0xFFFF, kind >> 16, 4, 8
        data = self.rest[start : min(start + size, end)]
        if len(data) < size:
            raise InputError("it is cut off")
        self.rest = self.rest[end:]
        return kind, data

    def numbers(self) -> NDArray[Any]:
        """Return the values of the next element."""
        kind, data = self.next()
        if kind not in _NUMBERS:
            raise InputError(f"it has values of the unknown type {kind}")
        return np.frombuffer(data, _NUMBERS[kind])


def _inflated(data: memoryview, most: int) -> memoryview:
    """Inflate at most ``most`` bytes of a variable, and return what follows its type and length."""
    return memoryview(zlib.decompressobj().decompress(data, most + 8))[8:]


def _most_bytes(rows: int, columns: int) -> int:
    """Return the most bytes that a variable can have: a sparse matrix that is full."""
    return _HEAD + 4 * (columns + 1) + 12 * rows * columns


def _dense(variable: _Elements, rows: int, columns: int) -> NDArray[Any]:
    return variable.numbers().reshape((rows, columns), order="F")


def _sparse(variable: _Elements, rows: int, columns: int) -> NDArray[Any]:
    """Return a dense array; stored are the row of each value, the bounds of each column, and the values."""
    row, bounds, values = variable.numbers(), variable.numbers(), variable.numbers()
    lengths = bounds[1:].astype(np.int64) - bounds[:-1]
    stored = int(lengths.sum())  # the arrays may be longer
    if (lengths < 0).any() or stored > len(row) or ((row < 0) | (row >= rows))[:stored].any():
        raise InputError("it has a sparse matrix with values outside of it")
    matrix = np.zeros((rows, columns), values.dtype)
    matrix[row[:stored], np.repeat(np.arange(columns), lengths)] = values[:stored]
    return matrix
