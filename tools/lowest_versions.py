"""Print the lowest versions that ``pyproject.toml`` promises, as constraints for pip.

``python tools/lowest_versions.py > lowest.txt`` and ``pip install -c lowest.txt '.[test]'`` install what is promised
and no more. Packages without a lower bound are left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lowest(requirements: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement that has one.

    >>> lowest(["numpy>=2.0", "dask[dataframe]>=2024.8", "scipy-stubs", "consilience[test]"])
    {'numpy': '2.0', 'dask': '2024.8'}
    """
    matched = (re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*>=\s*([\w.]+)", one) for one in requirements)
    return {found[1]: found[2] for found in matched if found is not None}


def main() -> int:
    """Print one constraint per line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = lowest([*project["dependencies"], *project["optional-dependencies"]["test"]])
    sys.stdout.write("".join(f"{name}=={version}.*\n" for name, version in sorted(found.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
