"""A place for compiled kernels where neither the package nor the home of the user can be written to."""

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
    """Let numba keep compiled kernels in a temporary folder if it would find no other place, and fail.

    So it is in containers that run as nobody, and on file systems that are read only.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if os.environ.get(_VARIABLE) or _can_write(Path(__file__).parent) or _can_write(home):
        return
    folder = _own_folder()
    if folder is None:  # nothing can be written at all: kernels are compiled again in every process
        numba: Any = import_module("numba")
        compiled = numba.njit
        numba.njit = lambda *functions, **options: compiled(*functions, **{**options, "cache": False})
        return
    os.environ[_VARIABLE] = folder
    if "numba" in sys.modules:  # which has read the variable already
        sys.modules["numba"].config.CACHE_DIR = folder


def _can_write(folder: Path) -> bool:
    """Return whether a folder can be written to, or made."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    return os.access(there, os.W_OK | os.X_OK)


def _own_folder() -> str | None:
    """Return a temporary folder that nobody else can write to, the same in every process; None if there is none."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for place in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"):
        if not place or not os.access(place, os.W_OK | os.X_OK):
            continue
        folder = os.path.join(place, f"consilience-kernels-{user}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.lstat(folder)
            # Compiled code is loaded from here, so it must not be a folder that another user has put in place.
            if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
                return folder
            return tempfile.mkdtemp(dir=place)
        except OSError:
            continue
    return None
