"""Where compiled kernels go if neither the package nor the home of the user can be written to."""

import os
import stat
from pathlib import Path

import pytest

from consilience import kernel_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users and modes of files are those of Unix")


def test_kernels_go_to_a_folder_of_the_user_that_nobody_else_can_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    kernel_cache.provide_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == ""  # this package can be written to
    monkeypatch.setattr(kernel_cache, "_can_write", lambda _: False)
    kernel_cache.provide_cache_folder()
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder == tmp_path / f"consilience-kernels-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    kernel_cache.provide_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] != str(folder)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/chosen")
    kernel_cache.provide_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == "/chosen"


def test_without_any_place_kernels_are_compiled_and_not_kept(monkeypatch):
    import numba

    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(numba, "njit", lambda **options: options)
    monkeypatch.setattr(kernel_cache, "_can_write", lambda _: False)
    monkeypatch.setattr(kernel_cache, "_own_folder", lambda: None)
    kernel_cache.provide_cache_folder()
    assert numba.njit(cache=True, nogil=True) == {"cache": False, "nogil": True}
