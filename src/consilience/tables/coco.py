"""Votes on boxes from COCO files, one per source, and labels as such a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from consilience.exceptions import FileFormatError
from consilience.label_model import LabelModel
from consilience.label_types import Boxes
from consilience.tables.annotations import Annotations, by_annotator
from consilience.tables.files import read_json, write_json
from consilience.votes import Votes, as_votes

#: Boxes may end this many pixels beyond the image, because of rounding.
SLACK = 1.0
#: Keys of references in the entries of a list, which are numbers or texts.
_IDS = {"images": "id", "annotations": "image_id", "categories": "id"}
#: Fields of annotations that name the annotator.
_SOURCE_KEYS = ("annotator", "annotator_id", "worker_id", "created_by", "source")
_FORM = "A COCO file has the lists images, annotations and categories."


def read_coco(
    path: str | Path | Mapping[str, str | Path | Mapping[str, Any]], *, outside: str = "refuse"
) -> Annotations:
    """Read one COCO file per source (its path, or what is in it): every image that it lists was seen, boxes or not.

    `path` may also be a folder, whose files are named after the sources, or one file whose annotations have a field
    "annotator", "annotator_id", "worker_id", "created_by" or "source". A box that ends outside of its image is refused,
    or cut off with ``outside="clip"``.

    Examples
    --------
    >>> def drawn(*boxes):
    ...     marks = [{"image_id": 7, "category_id": 1, "bbox": box} for box in boxes]
    ...     return {"images": [{"id": 7}], "annotations": marks, "categories": [{"id": 1, "name": "car"}]}
    >>> read = read_coco({"ann": drawn([10, 5, 50, 35]), "bob": drawn()})
    >>> read, [label.tolist() for label in read.votes.labels[0]]
    (Annotations('': rectanglelabels, Votes(1 item, 2 sources, 100% observed), 0 known),
    [[[10.0, 5.0, 60.0, 40.0]], []])
    """
    if outside not in ("refuse", "clip"):
        raise FileFormatError(f"outside={outside!r} is unknown. Use 'refuse' or 'clip'.")
    files = by_annotator(path, ".json")
    if set(files) == {None}:
        files = _by_source(Path(files[None]))
    if not files:
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
            box = _box(annotation, images[image], place, clip=outside == "clip")
            if len(names) > 1 and (not isinstance(category, (int, str)) or category not in names):
                raise FileFormatError(
                    f"{place} has the category {category!r}, which no file lists. Add it to categories."
                )
            drawn[image].append((*box, names[category]) if len(names) > 1 else box)
        for image, boxes in drawn.items():
            cells[rows[image], column] = boxes if len(names) > 1 else np.array(boxes).reshape(-1, 4)
    votes = Votes.from_array(cells, sources=list(documents), items=list(images))
    space = Boxes(list(names.values())) if len(names) > 1 else Boxes()
    nothing = (np.full(len(images), None, dtype=object), np.zeros(len(images), dtype=bool))
    data, kinds = tuple(images.values()), tuple(categories.values())
    return Annotations(votes, "rectanglelabels", space, nothing, data, categories=kinds)


def write_coco(path: str | Path, model: LabelModel, votes: Any, like: Annotations, *, force: bool = False) -> None:
    """Write labels as a COCO file; the score of a box is the probability that it is real.

    An existing file is replaced only with `force`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from consilience.label_model import LabelModel
    >>> mark = {"image_id": 7, "category_id": 1, "bbox": [10, 5, 50, 35]}
    >>> drawn = {"images": [{"id": 7}], "annotations": [mark], "categories": [{"id": 1, "name": "car"}]}
    >>> coco = read_coco({"ann": drawn, "bob": drawn, "cleo": drawn})
    >>> model = LabelModel(coco.space, method="majority").fit(coco.votes)
    >>> write_coco(Path(mkdtemp()) / "consensus.json", model, coco.votes, coco)
    """
    if not isinstance(model.space, Boxes) or not like.categories:
        what = "the labels are" if like.categories else "the export is not a COCO file; the labels are"
        raise FileFormatError(f"COCO files hold boxes with categories: {what} {type(model.space).__name__}.")
    table = as_votes(votes, model.space)
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
        "images": [dict(image) for image in like.data if image["id"] in known],
        "annotations": annotations,
        "categories": [dict(category) for category in like.categories],
    }
    write_json(path, document, force=force)


def _by_source(path: Path) -> dict[Any, Any]:
    """Return the document of each source of a file whose annotations say who drew them."""
    whole = _document(str(path), path)
    key = next((key for key in _SOURCE_KEYS if any(key in one for one in whole["annotations"])), None)
    if key is None:
        raise FileFormatError(
            f"{str(path)!r} does not say who drew what. Put a file per source into a folder, or give every annotation "
            f"a field such as {_SOURCE_KEYS[0]!r}."
        )
    names = dict.fromkeys(str(one.get(key)) for one in whole["annotations"])
    return {
        name: {**whole, "annotations": [one for one in whole["annotations"] if str(one.get(key)) == name]}
        for name in names
    }


def _document(name: str, given: Any) -> Mapping[str, list[Mapping[str, Any]]]:
    document = read_json(given) if isinstance(given, (str, Path)) else given
    if not isinstance(document, Mapping) or not isinstance(document.get("images"), list):
        raise FileFormatError(f"{name!r}: there is no list of images, so the items are unknown. {_FORM}")
    lists = {key: document.get(key) or [] for key in _IDS}
    for key, own in _IDS.items():
        if not isinstance(lists[key], list):
            raise FileFormatError(f"{name!r}: {key} is {lists[key]!r:.60}, which is not a list. {_FORM}")
        for number, one in enumerate(lists[key]):
            if not isinstance(one, Mapping):
                raise FileFormatError(
                    f"{name!r}: entry {number} of {key} is {one!r:.60}, which is not an object. {_FORM}"
                )
            if not isinstance(one.get(own), (int, str)):
                raise FileFormatError(
                    f"{name!r}: entry {number} of {key} has {own} {one.get(own)!r:.60}. Give a number or a text."
                )
    return lists


def _box(
    annotation: Mapping[str, Any], image: Mapping[str, Any], place: str, *, clip: bool
) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = (float(value) for value in annotation["bbox"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileFormatError(f"{place} has no bbox of four numbers: x, y, width, height.") from None
    if not np.isfinite([x, y, width, height]).all() or width < 0 or height < 0:
        raise FileFormatError(f"{place}: bbox {annotation['bbox']!r} is not a box. Give x, y, width and height.")
    far_x, far_y = (image.get(side) or np.inf for side in ("width", "height"))
    if not all(isinstance(far, (int, float)) for far in (far_x, far_y)):
        raise FileFormatError(f"Image {image['id']!r} of {far_x!r:.40} x {far_y!r:.40} pixels: sizes are numbers.")
    if clip:
        (x, end_x), (y, end_y) = (
            np.clip([low, low + size], 0.0, far).tolist() for low, size, far in ((x, width, far_x), (y, height, far_y))
        )
        return x, y, end_x, end_y
    if min(x, y) < -SLACK or x + width > far_x + SLACK or y + height > far_y + SLACK:
        raise FileFormatError(
            f"{place}: bbox {annotation['bbox']!r} extends beyond image {image['id']!r} of {far_x:g} x {far_y:g} "
            "pixels. Check that coordinates are pixels, or cut boxes off with outside='clip'."
        )
    return x, y, x + width, y + height
