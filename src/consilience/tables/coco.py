"""Votes on boxes from COCO files, one per source, and labels as such a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.exceptions import FileFormatError
from consilience.label_types import Boxes
from consilience.tables.encoding import votes_for
from consilience.tables.files import read_json, write_text
from consilience.votes import Votes

if TYPE_CHECKING:
    from consilience.label_model import LabelModel

#: Boxes may end this many pixels beyond the image, as by rounding.
SLACK = 1.0
_FORM = "A COCO file has the lists images, annotations and categories."


@dataclass(frozen=True, eq=False)
class CocoVotes:
    """Boxes of several sources on the same images."""

    #: Files are the sources, images the items. An image without annotations is an empty vote; one that a file does not
    #: list is an abstention.
    votes: Votes
    #: With the names of the categories, unless there is only one.
    space: Boxes
    #: Images and categories as the files have them.
    images: tuple[Mapping[str, Any], ...]
    categories: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        return f"CocoVotes({self.votes!r}, {len(self.categories)} categories)"


def read_coco(files: Mapping[str, str | Path | Mapping[str, Any]]) -> CocoVotes:
    """Read one COCO file per source (its path, or what is in it): every image that it lists was seen, boxes or not.

    Examples
    --------
    >>> def drawn(*boxes):
    ...     marks = [{"image_id": 7, "category_id": 1, "bbox": box} for box in boxes]
    ...     return {"images": [{"id": 7}], "annotations": marks, "categories": [{"id": 1, "name": "car"}]}
    >>> read = read_coco({"ann": drawn([10, 5, 50, 35]), "bob": drawn()})
    >>> read, [label.tolist() for label in read.votes.labels[0]]
    (CocoVotes(Votes(1 item, 2 sources, 100% observed), 1 categories), [[[10.0, 5.0, 60.0, 40.0]], []])
    """
    if not isinstance(files, Mapping) or not files:
        raise FileFormatError("Give one COCO file per source: read_coco({'ann': 'ann.json', 'bob': 'bob.json'}).")
    documents = {str(name): _document(str(name), given) for name, given in files.items()}
    categories: dict[Any, Mapping[str, Any]] = {}
    images: dict[Any, Mapping[str, Any]] = {}
    for name, document in documents.items():
        images |= {image["id"]: image for image in document["images"] if image["id"] not in images}
        for entry in document["categories"]:
            known = categories.setdefault(entry["id"], entry)
            if known.get("name") != entry.get("name"):
                raise FileFormatError(
                    f"Category {entry['id']!r} is {entry.get('name')!r} for {name!r} and {known.get('name')!r} "
                    "for another source. Number the categories alike in all files."
                )
    names = {key: str(category.get("name", key)) for key, category in categories.items()}
    rows = {identity: row for row, identity in enumerate(images)}
    cells = np.full((len(images), len(documents)), None, dtype=object)
    for column, (name, document) in enumerate(documents.items()):
        drawn: dict[Any, list[Any]] = {image["id"]: [] for image in document["images"]}
        for number, annotation in enumerate(document["annotations"]):
            place = f"{name!r}: annotation {number}"
            image, category = annotation.get("image_id"), annotation.get("category_id")
            if image not in drawn:
                raise FileFormatError(
                    f"{place} is about image {image!r}, which the file does not list. Add it to images."
                )
            box = _box(annotation, images[image], place)
            if len(names) > 1 and category not in names:
                raise FileFormatError(
                    f"{place} has the category {category!r}, which no file lists. Add it to categories."
                )
            drawn[image].append((*box, names[category]) if len(names) > 1 else box)
        for image, boxes in drawn.items():
            cells[rows[image], column] = boxes if len(names) > 1 else np.array(boxes).reshape(-1, 4)
    votes = Votes.from_array(cells, sources=list(documents), items=list(images))
    space = Boxes(list(names.values())) if len(names) > 1 else Boxes()
    return CocoVotes(votes, space, tuple(images.values()), tuple(categories.values()))


def write_coco(path: str | Path, model: LabelModel, votes: Any, like: CocoVotes, *, force: bool = False) -> None:
    """Write labels as a COCO file; the score of a box is the probability that it is real.

    A file that is there is replaced only with `force`.
    """
    if not isinstance(model.space, Boxes):
        raise FileFormatError(f"COCO files hold boxes, and the labels are {type(model.space).__name__}.")
    table = votes_for(votes, model.space)
    belief = model.posterior(table)
    ids = {str(category.get("name", category["id"])): category["id"] for category in like.categories}
    only = next(iter(ids.values()), 1)
    items = table.items.tolist()
    annotations: list[dict[str, Any]] = []
    for row in np.flatnonzero(table.observed.any(axis=1)).tolist():
        for box, probability in zip(
            belief.labels[row], belief.details["element_probability"][row].tolist(), strict=True
        ):
            x1, y1, x2, y2 = (float(value) for value in box[:4])
            annotation = {
                "id": len(annotations) + 1,
                "image_id": items[row],
                "category_id": ids[box[4]] if len(box) > 4 else only,
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": (x2 - x1) * (y2 - y1),
                "iscrowd": 0,
                "score": probability,
            }
            annotations.append(annotation)
    known = set(items)
    document = {
        "images": [dict(image) for image in like.images if image["id"] in known],
        "annotations": annotations,
        "categories": [dict(category) for category in like.categories],
    }
    write_text(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n", force=force)


def _document(name: str, given: Any) -> Mapping[str, list[Mapping[str, Any]]]:
    document = read_json(given) if isinstance(given, (str, Path)) else given
    if not isinstance(document, Mapping) or not isinstance(document.get("images"), list):
        raise FileFormatError(f"{name!r}: there is no list of images, so nobody knows what was looked at. {_FORM}")
    lists = {key: document.get(key) or [] for key in ("images", "annotations", "categories")}
    for key in ("images", "categories"):
        if any(not isinstance(one, Mapping) or "id" not in one for one in lists[key]):
            raise FileFormatError(f"{name!r}: an entry of {key} has no id. {_FORM}")
    return lists


def _box(annotation: Mapping[str, Any], image: Mapping[str, Any], place: str) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = (float(value) for value in annotation["bbox"])
    except (KeyError, TypeError, ValueError):
        raise FileFormatError(f"{place} has no bbox of four numbers: x, y, width, height.") from None
    if not np.isfinite([x, y, width, height]).all() or width < 0 or height < 0:
        raise FileFormatError(f"{place}: bbox {annotation['bbox']!r} is no box. Give x, y, width and height.")
    far_x, far_y = image.get("width") or np.inf, image.get("height") or np.inf
    if min(x, y) < -SLACK or x + width > far_x + SLACK or y + height > far_y + SLACK:
        raise FileFormatError(
            f"{place}: bbox {annotation['bbox']!r} lies outside of image {image['id']!r} of {far_x:g} x {far_y:g} "
            "pixels. Check the order of coordinates, and whether they are pixels."
        )
    return x, y, x + width, y + height
