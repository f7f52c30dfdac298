"""Which Python the workers of Spark run."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["use_this_interpreter"]


def use_this_interpreter(frame: Any) -> None:
    """Let the workers behind a Spark dataframe run this interpreter, unless whoever started the session chose one."""
    if "PYSPARK_PYTHON" in os.environ:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = getattr(frame.sparkSession, "sparkContext", None)
    if context is not None and getattr(context, "pythonExec", None) == "python3":
        context.pythonExec = sys.executable
