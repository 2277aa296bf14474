"""Makes sound pictures of every supported format and kind: `make_sound.py FOLDER`.

Each shows the same four coloured corners with a grid, so that a turned, mirrored or miscoloured
one stands out. Writes a JSON list of file names to stdout.
"""

import io
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps

FOLDER = Path(sys.argv[1])
SMALL, LARGE = (600, 380), (2100, 1330)
names = []


def scene(size, shift=0):
    width, height = size
    x = np.linspace(0, 1, width)[None, :]
    y = np.linspace(0, 1, height)[:, None]
    corners = np.array([[[200, 30, 30], [30, 160, 40]], [[40, 60, 200], [230, 220, 60]]], float)
    top = corners[0, 0] * (1 - x[..., None]) + corners[0, 1] * x[..., None]
    bottom = corners[1, 0] * (1 - x[..., None]) + corners[1, 1] * x[..., None]
    pixels = top * (1 - y[..., None]) + bottom * y[..., None]
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for at in range(0, width, 40):
        draw.line([(at, 0), (at, height)], fill=(255, 255, 255))
    draw.rectangle([20 + shift, 20, 120 + shift, 60], fill=(0, 0, 0))
    draw.text((30 + shift, 30), "top left", fill=(255, 255, 255))
    return image


def put(name, data):
    (FOLDER / name).write_bytes(data)
    names.append(name)


def saved(image, append_images=(), **options):
    buffer = io.BytesIO()
    # Copies: a picture keeps what one format's writer left on it, and the next one stumbles.
    if append_images:
        options["append_images"] = [other.copy() for other in append_images]
    image.copy().save(buffer, **options)
    return buffer.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(size, depth, colour, rows, interlace=0):
    """A PNG that Pillow does not write: 16 bits, or Adam7."""
    header = struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(b"".join(rows), 6)) + chunk(b"IEND", b""))


def wide(image):
    """16-bit samples, big end first."""
    samples = np.asarray(image).astype(np.uint16) * 257
    return [b"\0" + row.astype(">u2").tobytes() for row in samples]


def adam7(image):
    pixels = np.asarray(image)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for x, y, step_x, step_y in passes:
        for row in pixels[y::step_y, x::step_x]:
            if row.size:
                yield b"\0" + np.ascontiguousarray(row).tobytes()


for label, size in (("small", SMALL), ("large", LARGE)):
    image = scene(size)
    grey = image.convert("L")
    palette = image.quantize(64)
    clear = image.copy()
    mask = Image.new("L", size, 255)
    ImageDraw.Draw(mask).ellipse([size[0] // 3, size[1] // 3, size[0] // 2, size[1] // 2], fill=0)
    clear.putalpha(mask)
    others = [scene(size, 60 * step) for step in (1, 2)]

    put(f"{label}-rgb.png", saved(image, format="PNG"))
    put(f"{label}-rgba.png", saved(clear, format="PNG"))
    put(f"{label}-grey.png", saved(grey, format="PNG"))
    put(f"{label}-grey-alpha.png", saved(clear.convert("LA"), format="PNG"))
    put(f"{label}-bits.png", saved(grey.convert("1"), format="PNG"))
    put(f"{label}-palette.png", saved(palette, format="PNG"))
    put(f"{label}-palette16.png", saved(image.quantize(16), format="PNG", bits=4))
    put(f"{label}-palette-clear.png", saved(palette, format="PNG", transparency=3))
    put(f"{label}-rgb16.png", png(size, 16, 2, wide(image)))
    put(f"{label}-rgba16.png", png(size, 16, 6, wide(clear)))
    put(f"{label}-grey16.png", png(size, 16, 0, wide(grey)))
    put(f"{label}-adam7.png", png(size, 8, 2, adam7(image), interlace=1))
    put(f"{label}-animated.png", saved(image, format="PNG", save_all=True, append_images=others, duration=80))

    put(f"{label}-444.jpg", saved(image, format="JPEG", quality=90, subsampling=0))
    put(f"{label}-420.jpg", saved(image, format="JPEG", quality=85, subsampling=2))
    put(f"{label}-progressive.jpg", saved(image, format="JPEG", quality=85, progressive=True))
    put(f"{label}-grey.jpg", saved(grey, format="JPEG", quality=85))
    put(f"{label}-cmyk.jpg", saved(image.convert("CMYK"), format="JPEG", quality=90))
    put(f"{label}-restart.jpg", saved(image, format="JPEG", quality=85, restart_marker_rows=2))
    put(f"{label}-several.jpg", saved(image, format="MPO", save_all=True, append_images=others[:1], quality=85))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored = image
        for turn, value in ((Image.FLIP_LEFT_RIGHT, 2), (Image.ROTATE_180, 3), (Image.FLIP_TOP_BOTTOM, 4),
                            (Image.TRANSPOSE, 5), (Image.ROTATE_90, 6), (Image.TRANSVERSE, 7),
                            (Image.ROTATE_270, 8)):
            if value == orientation:
                stored = image.transpose(turn)
        data = saved(stored, format="JPEG", quality=88, exif=exif)
        shown = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        assert shown.size == size, orientation
        put(f"{label}-exif{orientation}.jpg", data)

    put(f"{label}-lossy.webp", saved(image, format="WEBP", quality=80))
    put(f"{label}-lossless.webp", saved(palette.convert("RGB"), format="WEBP", lossless=True))
    put(f"{label}-clear.webp", saved(clear, format="WEBP", quality=80))
    put(f"{label}-animated.webp", saved(image, format="WEBP", save_all=True, append_images=others, duration=80))
    put(f"{label}-still.gif", saved(palette, format="GIF"))
    put(f"{label}-animated.gif", saved(palette, format="GIF", save_all=True, append_images=others, duration=80))
    put(f"{label}-rgb.bmp", saved(image, format="BMP"))
    put(f"{label}-palette.bmp", saved(palette, format="BMP"))
    put(f"{label}-bits.bmp", saved(grey.convert("1"), format="BMP"))
    put(f"{label}-raw.tif", saved(image, format="TIFF"))
    put(f"{label}-lzw.tif", saved(image, format="TIFF", compression="tiff_lzw"))
    put(f"{label}-deflate.tif", saved(grey, format="TIFF", compression="tiff_adobe_deflate"))
    put(f"{label}-palette.tif", saved(palette, format="TIFF"))
    put(f"{label}-pages.tif", saved(image, format="TIFF", save_all=True, append_images=others))

square = scene((256, 256))
put("icon.ico", saved(square, format="ICO", sizes=[(16, 16), (48, 48), (256, 256)]))
put("icon-bitmap.ico", saved(square, format="ICO", sizes=[(64, 64)], bitmap_format="bmp"))
json.dump(names, sys.stdout)
