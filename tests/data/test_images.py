"""Tests of the image reader: modes, sizes, orientations, arrays and damaged files."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.formats import images
from regard.data.formats.images import BadImageError, ImageReader, image_digest, image_size

RED, WHITE = (255, 0, 0), (255, 255, 255)


@pytest.fixture
def saved(tmp_path):
    def save(image: Image.Image, name: str = "a.png", **options) -> Path:
        image.save(tmp_path / name, **options)
        return tmp_path / name

    return save


def halves(mode: str = "RGB", left=RED, right=(0, 0, 255), size=(8, 4)) -> Image.Image:
    """Return an image with halves of different colors, by default 8 wide and 4 high."""
    image = Image.new(mode, size, left)
    image.paste(right, (size[0] // 2, 0, *size))
    return image


def test_pixels_of_a_png(saved):
    pixels = ImageReader()(saved(halves()))
    assert (pixels.shape, pixels.dtype) == ((4, 8, 3), np.uint8)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[3, 7].tolist() == [0, 0, 255]
    gray = ImageReader(channels=1)(saved(halves()))
    assert gray.shape == (4, 8, 1)
    assert gray[0, 0, 0] == round(255 * 0.299)


@pytest.mark.parametrize("mode", ["L", "P", "1", "LA", "RGBA", "CMYK", "PA", "YCbCr"])
def test_all_modes(mode, saved):
    name = {"CMYK": "a.tif", "PA": "a.tif", "YCbCr": "a.tif"}.get(mode, "a.png")
    if mode == "PA":
        image = halves("RGBA", (*WHITE, 255), (0, 0, 0, 255)).convert("PA")
    else:
        image = halves("RGB", WHITE, (0, 0, 0)).convert(mode)
    if mode == "PA":
        pixels = ImageReader()(np.asarray(image.convert("RGBA")))
    else:
        pixels = ImageReader()(saved(image, name))
    assert pixels.shape == (4, 8, 3)
    assert pixels[0, 0].min() > 250
    assert pixels[0, 7].max() < 5


def test_transparency_is_blended_with_white(saved):
    path = saved(halves("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)))
    pixels = ImageReader()(path)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[0, 7].tolist() == [255, 255, 255]
    half_transparent = ImageReader()(saved(Image.new("RGBA", (2, 2), (0, 0, 0, 128))))
    assert half_transparent[0, 0].tolist() == [127, 127, 127]
    palette = Image.new("P", (2, 2), 3)
    palette.putpalette([0, 0, 0] * 3 + [9, 9, 9])
    assert ImageReader()(saved(palette, transparency=3))[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits(name, saved):
    sixteen_bit = np.array([[0, 257, 65535], [128 * 257, 300, 65534]], dtype=np.uint16)
    pixels = ImageReader(channels=1)(saved(Image.fromarray(sixteen_bit), name))
    assert pixels[..., 0].tolist() == [[0, 1, 255], [128, 1, 255]]
    assert ImageReader(channels=1)(sixteen_bit)[..., 0].tolist() == pixels[..., 0].tolist()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientations(orientation, saved):
    """The marked corner is at the top left for all eight EXIF orientations."""
    upright = halves()
    upright.putpixel((0, 0), (0, 255, 0))
    method = {
        2: "FLIP_LEFT_RIGHT",
        3: "ROTATE_180",
        4: "FLIP_TOP_BOTTOM",
        5: "TRANSPOSE",
        6: "ROTATE_90",
        7: "TRANSVERSE",
        8: "ROTATE_270",
    }.get(orientation)
    stored = upright if method is None else upright.transpose(getattr(Image.Transpose, method))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(stored, exif=exif)
    pixels = ImageReader()(path)
    assert np.array_equal(pixels, np.asarray(upright))
    assert image_size(path) == (4, 8)


def test_crop_pad_stretch(saved):
    path = saved(halves(size=(80, 40)))
    cropped = ImageReader((10, 10), fit="crop")(path)
    assert cropped[5, 0].tolist() == [255, 0, 0]
    assert cropped[5, 9].tolist() == [0, 0, 255]
    padded = ImageReader((10, 10), fit="pad")(path)
    assert padded[0, 0].tolist() == padded[9, 9].tolist() == [255, 255, 255]
    assert padded[5, 0].tolist() == [255, 0, 0]
    stretched = ImageReader((10, 10), fit="stretch")(path)
    assert stretched[0, 0].tolist() == [255, 0, 0]
    white_center = Image.new("RGB", (30, 10), "black")
    white_center.paste((255, 255, 255), (10, 0, 20, 10))
    assert ImageReader((10, 10), fit="crop")(saved(white_center)).min() > 200  # only the center
    assert ImageReader((10, 10), fit="stretch")(saved(white_center))[:, 0].max() < 60


@pytest.mark.parametrize("size", [(1, 1), (1, 4000), (4000, 1), (3, 2)])
@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_tiny_and_thin_images(size, fit, saved):
    assert ImageReader((16, 24), fit=fit)(saved(Image.new("RGB", size, RED))).shape == (16, 24, 3)


def test_large_jpeg_is_decoded_at_a_reduced_size(saved, monkeypatch):
    path = saved(halves(size=(4000, 2000)), "a.jpg", quality=95)
    decoded_sizes = []
    flatten_image = images.flatten_image
    monkeypatch.setattr(
        images,
        "flatten_image",
        lambda image, mode: decoded_sizes.append(image.size) or flatten_image(image, mode),
    )
    pixels = ImageReader((32, 32))(path)
    assert decoded_sizes[0][0] < 1000
    assert pixels[16, 0, 0] > 240
    assert pixels[16, 31, 2] > 240


def test_arrays():
    unchanged = np.zeros((4, 4, 3), np.uint8)
    assert ImageReader((4, 4))(unchanged) is unchanged
    assert ImageReader((2, 2), channels=1)(np.full((4, 4), 9, np.uint8)).tolist() == [[[9]] * 2] * 2
    assert ImageReader()(np.full((2, 2), 9, np.uint8)).tolist() == [[[9] * 3] * 2] * 2
    assert ImageReader(channels=1)(np.array([[True, False]])).tolist() == [[[255], [0]]]
    for array in (
        np.zeros((2, 2), np.float32),
        np.zeros(3, np.uint8),
        np.zeros((2, 2, 2), np.uint8),
    ):
        with pytest.raises(BadImageError):
            ImageReader()(array)
    with pytest.raises(BadImageError, match="int64; give integers of 8 or 16 bits"):
        ImageReader()(np.array([[-1, 5]]))


def huge_png(width: int, height: int) -> bytes:
    """Return a PNG whose header claims a huge size, without data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        typed_data = kind + data
        return struct.pack(">I", len(data)) + typed_data + struct.pack(">I", zlib.crc32(typed_data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_unreadable_files(tmp_path, saved):
    def error_message(data: bytes | None, name: str = "b.png") -> str:
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ValueError) as caught:
            ImageReader((8, 8))(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
        return str(caught.value)

    png_path = saved(
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8))
    )
    jpeg_path = saved(Image.open(png_path), "c.jpg")
    assert "empty file, not an image" in error_message(b"")
    assert "not an image in a known format" in error_message(b"hello")
    assert "damaged image (" in error_message(png_path.read_bytes()[:2000])
    assert "damaged image (" in error_message(jpeg_path.read_bytes()[:1000], "d.jpg")
    assert "more than 89,478,485 pixels (a decompression bomb?); scale it down" in error_message(
        huge_png(9999, 9999)
    )
    assert "decompression bomb" in error_message(huge_png(60_000, 60_000))
    assert "floating-point values of unknown range" in error_message(
        saved(Image.fromarray(np.zeros((4, 4), np.float32)), "f.tif").read_bytes(), "g.tif"
    )
    assert error_message(None, "gone.png").endswith("gone.png: there is no such file")
    (tmp_path / "folder").mkdir()
    assert "this is a folder" in error_message(None, "folder")
    with pytest.raises(BadImageError, match=r"^line 3: damaged image"):
        ImageReader()(tmp_path / "d.jpg", "line 3")


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_raise_one_line(seed, tmp_path, saved):
    """Change random bytes; the file is read, or the error is one line."""
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8))
    name = ("a.png", "a.jpg", "a.gif", "a.webp", "a.tif", "a.bmp")[seed % 6]
    data = bytearray(saved(image, name).read_bytes())
    for position in rng.integers(0, len(data), 30):
        data[position] = rng.integers(256)
    (tmp_path / name).write_bytes(data)
    try:
        assert ImageReader((8, 8))(tmp_path / name).shape == (8, 8, 3)
    except BadImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - reading may also succeed


def test_digests(saved, tmp_path):
    first, second = saved(halves()), saved(halves(), "b.png")
    assert image_digest(first) == image_digest(str(second))
    assert image_digest(np.zeros((2, 3), np.uint8)) != image_digest(np.zeros((3, 2), np.uint8))


def test_bad_readers():
    with pytest.raises(ValueError, match=r"channels must be 1 \(gray\) or 3"):
        ImageReader(channels=4)
    with pytest.raises(ValueError, match="size must be positive"):
        ImageReader((0, 4))


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_all_shapes(fit):
    """Rounding must not exceed the image, as it would for sides of 47, 55, 94 and others."""
    for side in (28, 96, 224):
        reader = ImageReader((side, side), 1, fit)
        for length in (1, 2, 3, 47, 55, 94, 97, 173, 188, 241, 253, 255, 257, 399):
            for shape in ((length, 256), (256, length)):
                assert reader(np.zeros((*shape, 1), np.uint8)).shape == (side, side, 1)
