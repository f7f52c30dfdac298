"""Say under which licenses the installed dependencies are, and fail where one is not on the list.

Only what ``pip install consilience`` brings along is looked at, and what that needs in turn.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata, requires

#: Licenses under which a dependency may be shipped together with this package.
ALLOWED = re.compile(r"\b(?:MIT|0?BSD|Apache|PSF|Python Software Foundation|ISC|Zlib|Unlicense)\b", re.IGNORECASE)


def needed(name: str, found: dict[str, str]) -> dict[str, str]:
    """Return all packages that one needs, and their licenses."""
    for requirement in requires(name) or ():
        if "extra ==" in requirement:
            continue
        other = re.match(r"[\w.-]+", requirement)
        if other is None or other[0].lower() in found:
            continue
        try:
            told = metadata(other[0])
        except PackageNotFoundError:  # for another platform
            continue
        classified = [one for one in told.get_all("Classifier") or () if one.startswith("License")]
        named = [told.get("License-Expression"), *classified, (told.get("License") or "").strip().split("\n")[0]]
        found[other[0].lower()] = next(filter(None, named), "")
        needed(other[0], found)
    return found


def main() -> int:
    """Print one line per package, and return 1 if one has a license that is not allowed."""
    found = needed("consilience", {})
    wrong = [name for name, told in found.items() if not ALLOWED.search(told)]
    for name, told in sorted(found.items()):
        sys.stdout.write(f"{'NOT ALLOWED ' if name in wrong else ''}{name}: {told or 'says nothing'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
