"""A folder for compiled kernels if neither the package nor the home of the user is writable."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

_VARIABLE = "NUMBA_CACHE_DIR"


def provide_cache_folder() -> None:
    """Let numba store compiled kernels in a temporary folder if it would fail otherwise.

    It fails in containers that run as nobody, and on read-only file systems.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if os.environ.get(_VARIABLE) or _can_write(Path(__file__).parent) or _can_write(home):
        return
    folder = _own_folder()
    if folder is None:  # nothing is writable, so kernels are compiled again in every process
        numba: Any = import_module("numba")
        compiled = numba.njit
        numba.njit = lambda *functions, **options: compiled(*functions, **{**options, "cache": False})
        return
    os.environ[_VARIABLE] = folder
    if "numba" in sys.modules:  # it has already read the variable
        sys.modules["numba"].config.CACHE_DIR = folder


def _can_write(folder: Path) -> bool:
    """Return whether a folder is writable or can be created."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    return os.access(there, os.W_OK | os.X_OK)


def _own_folder() -> str | None:
    """Return a temporary folder that only this user can write to, the same in every process; None if impossible."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for place in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"):
        if not place or not os.access(place, os.W_OK | os.X_OK):
            continue
        folder = os.path.join(place, f"consilience-kernels-{user}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.lstat(folder)
            # Compiled code is loaded from here, so the folder must not belong to another user.
            if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
                return folder
            return tempfile.mkdtemp(dir=place)
        except OSError:
            continue
    return None
