"""What the items themselves look like: columns to show with each contested item, small pictures embedded."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from consilience.arrays import is_null
from consilience.exceptions import InvalidVotesError
from consilience.tables.frames import as_frame

#: Letters of one cell that are shown, and pixels of the longer side of an embedded picture.
MAX_LETTERS, MAX_PIXELS = 1_200, 360
#: Bytes of a picture that is embedded as it is, where Pillow is not there to make it smaller.
MAX_BYTES = 60_000
#: Pictures that a browser shows and that hold no script, by the end of their names.
PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}


@dataclass(frozen=True)
class Picture:
    """A small picture inside the page; `size` is that of the file in pixels, where it is known."""

    address: str
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Content:
    """Columns about the items, one cell per item of the votes."""

    columns: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, show: Any, n_items: int) -> Content:
        """Return the columns of a frame or a mapping, or say that it does not fit the votes."""
        if show is None:
            return cls({})
        if not isinstance(show, Mapping):
            show = as_frame(show).to_dict(as_series=False)
        columns = {str(name): list(values) for name, values in show.items()}
        for name, values in columns.items():
            if len(values) != n_items:
                raise InvalidVotesError(
                    f"show has {len(values)} rows in column {name!r}, and there are {n_items} items. Pass one row per "
                    "item, in the order of the votes."
                )
        return cls(columns)

    def texts(self, row: int) -> dict[str, str]:
        """Return the cells of an item that are not pictures."""
        cells = {name: values[row] for name, values in self.columns.items()}
        return {
            name: text if len(text := str(cell)) <= MAX_LETTERS else f"{text[:MAX_LETTERS]}…"
            for name, cell in cells.items()
            if not is_null(cell) and _picture_file(cell) is None
        }

    def picture(self, row: int) -> Picture | None:
        """Return the picture of an item, where a cell is the path of one."""
        files = (_picture_file(values[row]) for values in self.columns.values())
        return next((_embedded(file) for file in files if file is not None), None)


def _picture_file(cell: Any) -> Path | None:
    """Return the file that a cell names, if it is a picture that is there."""
    if not isinstance(cell, str | Path) or Path(cell).suffix.lower() not in PICTURES:
        return None
    return Path(cell) if Path(cell).is_file() else None


def _embedded(file: Path) -> Picture | None:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        data = file.read_bytes()
        kind = PICTURES[file.suffix.lower()]
        return Picture(f"data:image/{kind};base64,{b64encode(data).decode()}") if len(data) <= MAX_BYTES else None
    try:
        with Image.open(file) as image:
            size = image.size
            image.thumbnail((MAX_PIXELS, MAX_PIXELS))
            out = BytesIO()
            image.convert("RGB").save(out, "JPEG", quality=80)
    except (OSError, UnidentifiedImageError):
        return None
    return Picture(f"data:image/jpeg;base64,{b64encode(out.getvalue()).decode()}", size)
