# SPDX-License-Identifier: Apache-2.0
"""safetensors files as numpy arrays, bf16 included: read where they lie, written in the reference writer's layout."""
import json
import os
import pathlib
import struct

import ml_dtypes
import numpy as np

_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
           "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_}


class File:
    """One file; tensors are views of the mapped file until they are copied."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with open(path, "rb") as f:
            (size,) = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(size))
        self.metadata = header.pop("__metadata__", {})
        self._entries = header
        self._data = np.memmap(path, np.uint8, "r", offset=8 + size) if header else None

    def names(self):
        return list(self._entries)

    def __contains__(self, name):
        return name in self._entries

    def __getitem__(self, name):
        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        return self._data[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])


class Folder:
    """All tensors of a model's folder, in one file or several, under their names without what stands before layers."""

    PREFIXES = ("language_model.model.", "model.language_model.", "model.")

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        index = self.folder / "model.safetensors.index.json"
        if index.exists():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        else:
            names = ["model.safetensors"]
        if any(pathlib.PurePath(n).name != n for n in names):
            raise ValueError(f"{index}: names files outside its folder")
        self._at = {}
        for name in names:
            file = File(self.folder / name)
            for tensor in file.names():
                self._at[self.short(tensor)] = (file, tensor)

    @classmethod
    def short(cls, name):
        for prefix in cls.PREFIXES:
            if name.startswith(prefix):
                return name[len(prefix):]
        return name

    def __contains__(self, name):
        return name in self._at

    def __getitem__(self, name):
        if name not in self._at:
            raise KeyError(f"{self.folder}: no tensor {name}")
        file, tensor = self._at[name]
        return file[tensor]


def write(path, tensors, metadata=None):
    """The file appears whole, or not at all."""
    names = {np.dtype(v): k for k, v in _DTYPES.items()}
    order = sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n))
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name in order:
        array = tensors[name]
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(path)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for name in order:
                f.write(np.ascontiguousarray(tensors[name]).tobytes())  # EXP-4: a transposed view is made whole first
            f.flush()
            os.fsync(f.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
