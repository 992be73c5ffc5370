"""[data] of images with labels or captions."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, NonEmptyTuple, Positive
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")


class ShapesDataConfig(DataConfig):
    """Synthetic images of a colored shape, with a label and a caption."""

    corpus_class: ClassVar = "regard.data.synthetic.shapes:Shapes"
    kind: Literal["shapes"] = "shapes"
    size: Positive = Field(default=4000, description="Number of training images.")
    seed: Count = Field(default=0, description="Random seed of the images.")
    held_out: Positive = Field(default=500, description="Number of images in dev, and in test.")
    side: Positive = Field(default=32, description="Height and width of an image, in pixels.")
    shapes: NonEmptyTuple[str] = Field(default=SHAPES, description="Shapes to draw.")
    noise: Count = Field(
        default=24,
        description="Strength of the noise in the background, in gray levels, 0 or more.",
    )


class ImagesDataConfig(DataConfig):
    """Your own images with labels."""

    corpus_class: ClassVar = "regard.data.formats.image_files:ImageFiles"
    record_fields: ClassVar = (("image", "label"),)
    record_format: ClassVar = "image_table"
    kind: Literal["images"] = "images"
    train: FilePaths = Field(
        description="Folder with a folder of images for each label; a TSV or CSV of paths and "
        'labels; or two IDX files: ["images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"].'
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["folder", "idx", "tsv", "csv"] | None = Field(
        default=None, description="Format: folder, idx, tsv or csv. Default: by file name."
    )
    columns: NonEmptyTuple[str] = Field(
        default=("image", "label"),
        description='Names of the columns of a TSV or CSV, in order; "-" skips a column.',
    )
    labels: NonEmptyTuple[str] | None = Field(
        default=None, description="Names of the classes of IDX files, from class 0."
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicImagesDataConfig(DataConfig):
    """Public images with labels, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.formats.image_files:PublicImages"
    kind: Literal["public"] = "public"
    name: Literal["fashion_mnist", "fashion_mnist_20k"] = Field(
        default="fashion_mnist", description=PUBLIC_NAME_HELP
    )


class DigitsDataConfig(DataConfig):
    """Synthetic images of digits in a grid; the caption says which digit is where."""

    corpus_class: ClassVar = "regard.data.synthetic.digits:Digits"
    kind: Literal["digits"] = "digits"
    size: Positive = Field(default=8000, description="Number of training images.")
    seed: Count = Field(default=0, description="Random seed of the images.")
    held_out: Positive = Field(default=500, description="Number of images in dev, and in test.")
    rows: Literal[2, 3] = Field(default=2, description="Rows of the grid: 2 or 3.")
    columns: Literal[2, 3] = Field(default=2, description="Columns of the grid: 2 or 3.")
    min_digits: Positive = Field(default=1, description="Minimum number of digits in an image.")
    max_digits: Positive = Field(default=4, description="Maximum number of digits in an image.")
    side: Positive = Field(default=48, description="Height and width of an image, in pixels.")
    noise: Count = Field(
        default=24,
        description="Strength of the noise in the background, in gray levels, 0 or more.",
    )
    digit_source: Literal["font", "scikit-learn"] = Field(
        default="font",
        description="Source of the digits: font (drawn by Pillow) or scikit-learn (1,797 "
        "handwritten digits; needs scikit-learn).",
    )


class CaptionFilesDataConfig(DataConfig):
    """Your own images with captions."""

    corpus_class: ClassVar = "regard.data.formats.captions:CaptionFiles"
    record_fields: ClassVar = (("image", "caption"),)
    kind: Literal["captions"] = "captions"
    train: FilePaths = Field(
        description='JSON lines of {"image": …, "caption": …}, with a line for each caption; or '
        "JSON in the format of COCO."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["jsonl", "coco"] | None = Field(
        default=None, description="Format: jsonl or coco. Default: by file name."
    )
    folder: str | None = Field(
        default=None, description="Folder of the images. Default: the folder of the file."
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)
