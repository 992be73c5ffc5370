"""Images of every kind come out as 8-bit arrays of one size; what cannot is named in one line."""

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
    """Left and right of different colour; 8 wide, 4 high."""
    image = Image.new(mode, size, left)
    image.paste(right, (size[0] // 2, 0, *size))
    return image


def test_as_it_is(saved):
    found = ImageReader()(saved(halves()))
    assert (found.shape, found.dtype) == ((4, 8, 3), np.uint8)
    assert found[0, 0].tolist() == [255, 0, 0]
    assert found[3, 7].tolist() == [0, 0, 255]
    grey = ImageReader(channels=1)(saved(halves()))
    assert grey.shape == (4, 8, 1)
    assert grey[0, 0, 0] == round(255 * 0.299)


@pytest.mark.parametrize("mode", ["L", "P", "1", "LA", "RGBA", "CMYK", "PA", "YCbCr"])
def test_every_mode(mode, saved):
    name = {"CMYK": "a.tif", "PA": "a.tif", "YCbCr": "a.tif"}.get(mode, "a.png")
    if mode == "PA":
        image = halves("RGBA", (*WHITE, 255), (0, 0, 0, 255)).convert("PA")
    else:
        image = halves("RGB", WHITE, (0, 0, 0)).convert(mode)
    if mode == "PA":
        found = ImageReader()(np.asarray(image.convert("RGBA")))
    else:
        found = ImageReader()(saved(image, name))
    assert found.shape == (4, 8, 3)
    assert found[0, 0].min() > 250
    assert found[0, 7].max() < 5


def test_alpha_lies_on_white(saved):
    path = saved(halves("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)))
    found = ImageReader()(path)
    assert found[0, 0].tolist() == [255, 0, 0]
    assert found[0, 7].tolist() == [255, 255, 255]
    half = ImageReader()(saved(Image.new("RGBA", (2, 2), (0, 0, 0, 128))))
    assert half[0, 0].tolist() == [127, 127, 127]
    palette = Image.new("P", (2, 2), 3)
    palette.putpalette([0, 0, 0] * 3 + [9, 9, 9])
    assert ImageReader()(saved(palette, transparency=3))[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits(name, saved):
    deep = np.array([[0, 257, 65535], [128 * 257, 300, 65534]], dtype=np.uint16)
    found = ImageReader(channels=1)(saved(Image.fromarray(deep), name))
    assert found[..., 0].tolist() == [[0, 1, 255], [128, 1, 255]]
    assert ImageReader(channels=1)(deep)[..., 0].tolist() == found[..., 0].tolist()


@pytest.mark.parametrize("turn", range(1, 9))
def test_upright(turn, saved):
    """By all eight orientations of EXIF, one corner stays where it belongs."""
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
    }.get(turn)
    kept = upright if method is None else upright.transpose(getattr(Image.Transpose, method))
    exif = Image.Exif()
    exif[0x0112] = turn
    path = saved(kept, exif=exif)
    found = ImageReader()(path)
    assert np.array_equal(found, np.asarray(upright))
    assert image_size(path) == (4, 8)


def test_crop_pad_stretch(saved):
    path = saved(halves(size=(80, 40)))
    cut = ImageReader((10, 10), fit="crop")(path)
    assert cut[5, 0].tolist() == [255, 0, 0]
    assert cut[5, 9].tolist() == [0, 0, 255]
    laid = ImageReader((10, 10), fit="pad")(path)
    assert laid[0, 0].tolist() == laid[9, 9].tolist() == [255, 255, 255]
    assert laid[5, 0].tolist() == [255, 0, 0]
    pulled = ImageReader((10, 10), fit="stretch")(path)
    assert pulled[0, 0].tolist() == [255, 0, 0]
    middle = Image.new("RGB", (30, 10), "black")
    middle.paste((255, 255, 255), (10, 0, 20, 10))
    assert ImageReader((10, 10), fit="crop")(saved(middle)).min() > 200  # the middle, and no more
    assert ImageReader((10, 10), fit="stretch")(saved(middle))[:, 0].max() < 60


@pytest.mark.parametrize("size", [(1, 1), (1, 4000), (4000, 1), (3, 2)])
@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_tiny_and_thin(size, fit, saved):
    assert ImageReader((16, 24), fit=fit)(saved(Image.new("RGB", size, RED))).shape == (16, 24, 3)


def test_a_large_photo_is_decoded_small(saved, monkeypatch):
    path = saved(halves(size=(4000, 2000)), "a.jpg", quality=95)
    seen = []
    flat = images.flatten_image
    monkeypatch.setattr(
        images, "flatten_image", lambda image, mode: seen.append(image.size) or flat(image, mode)
    )
    found = ImageReader((32, 32))(path)
    assert seen[0][0] < 1000
    assert found[16, 0, 0] > 240
    assert found[16, 31, 2] > 240


def test_arrays():
    plain = np.zeros((4, 4, 3), np.uint8)
    assert ImageReader((4, 4))(plain) is plain
    assert ImageReader((2, 2), channels=1)(np.full((4, 4), 9, np.uint8)).tolist() == [[[9]] * 2] * 2
    assert ImageReader()(np.full((2, 2), 9, np.uint8)).tolist() == [[[9] * 3] * 2] * 2
    assert ImageReader(channels=1)(np.array([[True, False]])).tolist() == [[[255], [0]]]
    for wrong in (
        np.zeros((2, 2), np.float32),
        np.zeros(3, np.uint8),
        np.zeros((2, 2, 2), np.uint8),
    ):
        with pytest.raises(BadImageError):
            ImageReader()(wrong)
    with pytest.raises(BadImageError, match="int64; give whole numbers of 8 or 16 bits"):
        ImageReader()(np.array([[-1, 5]]))


def huge_png(width: int, height: int) -> bytes:
    """A header that promises much, and nothing behind it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_what_cannot_be_read(tmp_path, saved):
    def said(data: bytes | None, name: str = "b.png") -> str:
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ValueError) as caught:
            ImageReader((8, 8))(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
        return str(caught.value)

    good = saved(Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)))
    jpeg = saved(Image.open(good), "c.jpg")
    assert "empty file, no image" in said(b"")
    assert "not an image of a format that is known" in said(b"hello")
    assert "damaged image (" in said(good.read_bytes()[:2000])
    assert "damaged image (" in said(jpeg.read_bytes()[:1000], "d.jpg")
    assert "more than 89,478,485 pixels, as a bomb has; make it smaller" in said(
        huge_png(9999, 9999)
    )
    assert "as a bomb has" in said(huge_png(60_000, 60_000))
    assert "fractions of unknown range" in said(
        saved(Image.fromarray(np.zeros((4, 4), np.float32)), "f.tif").read_bytes(), "g.tif"
    )
    assert said(None, "gone.png").endswith("gone.png: there is no such file")
    (tmp_path / "folder").mkdir()
    assert "this is a folder" in said(None, "folder")
    with pytest.raises(BadImageError, match=r"^line 3: damaged image"):
        ImageReader()(tmp_path / "d.jpg", "line 3")


@pytest.mark.parametrize("seed", range(20))
def test_any_damage_is_one_line(seed, tmp_path, saved):
    """Bytes that are changed at random: it is read, or it is told."""
    draw = np.random.default_rng(seed)
    image = Image.fromarray(draw.integers(0, 255, (16, 16, 3), np.uint8))
    name = ("a.png", "a.jpg", "a.gif", "a.webp", "a.tif", "a.bmp")[seed % 6]
    data = bytearray(saved(image, name).read_bytes())
    for place in draw.integers(0, len(data), 30):
        data[place] = draw.integers(256)
    (tmp_path / name).write_bytes(data)
    try:
        assert ImageReader((8, 8))(tmp_path / name).shape == (8, 8, 3)
    except BadImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both ends are fine


def test_digests(saved, tmp_path):
    one, other = saved(halves()), saved(halves(), "b.png")
    assert image_digest(one) == image_digest(str(other))
    assert image_digest(np.zeros((2, 3), np.uint8)) != image_digest(np.zeros((3, 2), np.uint8))


def test_wrong_readers():
    with pytest.raises(ValueError, match=r"channels must be 1 \(grey\) or 3"):
        ImageReader(channels=4)
    with pytest.raises(ValueError, match="size must be positive"):
        ImageReader((0, 4))


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_every_shape_fits(fit):
    """173 of 96 rows, say: a quotient of two divisions may be a hair more than the image has."""
    for side in (28, 96, 224):
        reader = ImageReader((side, side), 1, fit)
        for other in range(1, 400):
            for shape in ((other, 256), (256, other)):
                assert reader(np.zeros((*shape, 1), np.uint8)).shape == (side, side, 1)
