"""TODO regard.config.data.images."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Fraction, NonEmptyTuple, Positive
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")


class ShapesDataConfig(DataConfig):
    """Images of a coloured shape, with its name and a sentence on it: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.shapes:Shapes"
    kind: Literal["shapes"] = "shapes"
    size: Positive = Field(default=4000, description="Images to train on.")
    seed: Count = Field(default=0, description="Another seed, other images.")
    held_out: Positive = Field(default=500, description="Images in dev, and in the test.")
    side: Positive = Field(default=32, description="Height and width, in pixels.")
    shapes: NonEmptyTuple[str] = Field(default=SHAPES, description="Which shapes, of these.")
    noise: Count = Field(default=24, description="Of the ground: 0 is none, 100 is much.")


class ImagesDataConfig(DataConfig):
    """Your own images with labels."""

    corpus_class: ClassVar = "regard.data.formats.image_files:ImageFiles"
    record_fields: ClassVar = (("image", "label"),)
    record_format: ClassVar = "image_table"
    kind: Literal["images"] = "images"
    train: FilePaths = Field(
        description="A folder with a folder of images for each label; a TSV or CSV of paths and "
        'labels; or two IDX files: ["images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"].'
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["folder", "idx", "tsv", "csv"] | None = Field(
        default=None, description="folder, idx, tsv or csv; not set, the names of the files tell."
    )
    columns: NonEmptyTuple[str] = Field(
        default=("image", "label"),
        description='What each column of a TSV or CSV is, in order; "-" skips one.',
    )
    labels: NonEmptyTuple[str] | None = Field(
        default=None, description="Names for the numbers of IDX files, from 0."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicImagesDataConfig(DataConfig):
    """Public images with classes, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.formats.image_files:PublicImages"
    kind: Literal["public"] = "public"
    name: Literal["fashion_mnist", "fashion_mnist_20k"] = Field(
        default="fashion_mnist", description=PUBLIC_NAME_HELP
    )


class DigitsDataConfig(DataConfig):
    """Images of digits in the cells of a grid, and which digit is where: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.digits:Digits"
    kind: Literal["digits"] = "digits"
    size: Positive = Field(default=8000, description="Images to train on.")
    seed: Count = Field(default=0, description="Another seed, other images.")
    held_out: Positive = Field(default=500, description="Images in dev, and in the test.")
    rows: Literal[2, 3] = Field(default=2, description="Rows of cells: 2 or 3.")
    columns: Literal[2, 3] = Field(default=2, description="Columns of cells: 2 or 3.")
    min_digits: Positive = Field(default=1, description="Digits of an image, at least.")
    max_digits: Positive = Field(default=4, description="Digits of an image, at most.")
    side: Positive = Field(default=48, description="Height and width, in pixels.")
    noise: Count = Field(default=24, description="Of the ground: 0 is none, 100 is much.")
    digit_source: Literal["font", "scikit-learn"] = Field(
        default="font",
        description="Digits in Pillow's font, or those that people wrote, if scikit-learn is "
        "installed, which has 1,797 of them.",
    )


class CaptionFilesDataConfig(DataConfig):
    """Your own images with captions."""

    corpus_class: ClassVar = "regard.data.formats.captions:CaptionFiles"
    record_fields: ClassVar = (("image", "caption"),)
    kind: Literal["captions"] = "captions"
    train: FilePaths = Field(
        description='JSON lines of {"image": …, "caption": …}, an image as often as it has '
        "captions; or COCO's JSON of images and annotations."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["jsonl", "coco"] | None = Field(
        default=None, description="jsonl or coco; not set, the names of the files tell."
    )
    folder: str | None = Field(
        default=None, description="Where the images are; where the file is, if not set."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)
