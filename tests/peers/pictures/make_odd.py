"""Makes damaged and odd pictures: `make_odd.py FOLDER SEED`; the same seed makes the same files.

Writes a JSON list of file names to stdout.
"""

import io
import json
import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

FOLDER, SEED = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(SEED)
names = []


def put(name, data):
    (FOLDER / name).write_bytes(data)
    names.append(name)


def saved(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def noise(size):
    """Soft noise: something that neither compresses to nothing nor is unlike a picture."""
    width, height = size
    rows = np.random.default_rng(SEED).integers(0, 256, (height // 6 + 2, width // 6 + 2, 3), np.uint8)
    return Image.fromarray(rows).resize(size, Image.BICUBIC)


def chunks(data):
    at = 8
    while at + 12 <= len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        yield data[at:at + 12 + length]
        at += 12 + length


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


picture = noise((150, 110))
later = [picture.rotate(90 * turn) for turn in (1, 2)]
palette = picture.quantize(48)
clear = picture.copy()
clear.putalpha(picture.convert("L"))
BASES = {
    "rgb.png": saved(picture, format="PNG"),
    "rgba.png": saved(clear, format="PNG"),
    "palette.png": saved(palette, format="PNG", transparency=2),
    "animated.png": saved(picture, format="PNG", save_all=True, append_images=later, duration=50),
    "plain.jpg": saved(picture, format="JPEG", quality=85),
    "progressive.jpg": saved(picture, format="JPEG", quality=85, progressive=True),
    "cmyk.jpg": saved(picture.convert("CMYK"), format="JPEG", quality=85),
    "several.jpg": saved(picture, format="MPO", save_all=True, append_images=later[:1]),
    "lossy.webp": saved(picture, format="WEBP", quality=80),
    "lossless.webp": saved(clear, format="WEBP", lossless=True),
    "animated.webp": saved(picture, format="WEBP", save_all=True, append_images=later, duration=50),
    "still.gif": saved(palette, format="GIF"),
    "animated.gif": saved(palette, format="GIF", save_all=True, append_images=later, duration=50),
    "rgb.bmp": saved(picture, format="BMP"),
    "lzw.tif": saved(picture, format="TIFF", compression="tiff_lzw"),
    "icon.ico": saved(picture.resize((64, 64)), format="ICO", sizes=[(64, 64)]),
}

for name, data in BASES.items():
    for turn in range(5):
        put(f"cut{turn}-{name}", data[:chance.randrange(1, len(data))])
    for turn in range(7):
        bits = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            # Every other file is hit in its header, where it hurts most.
            end = min(64, len(bits)) if turn % 2 else len(bits)
            bits[chance.randrange(end)] ^= 1 << chance.randrange(8)
        put(f"flip{turn}-{name}", bytes(bits))
    for turn in range(2):
        start = chance.randrange(len(data))
        length = chance.randrange(1, 200)
        put(f"blank{turn}-{name}", data[:start] + bytes(len(data[start:start + length])) + data[start + length:])
        put(f"twice{turn}-{name}", data[:start] + data[max(0, start - length):])
    put(f"tail-{name}", data + chance.randbytes(500))
    put(f"head-{name}", chance.randbytes(3) + data)
    put(f"joined-{name}", data + data)

# PNG: its chunks wrong in every way.
signature = BASES["palette.png"][:8]
header, *middle, end = list(chunks(BASES["palette.png"]))
kinds = {piece[4:8]: piece for piece in middle}
data_chunks = [piece for piece in middle if piece[4:8] == b"IDAT"]
rest = [piece for piece in middle if piece[4:8] != b"IDAT"]


def assembled(*pieces):
    return signature + b"".join(pieces)


put("no-end.png", assembled(header, *middle))
put("no-palette.png", assembled(header, *(p for p in middle if p[4:8] != b"PLTE"), end))
put("no-data.png", assembled(header, *rest, end))
put("two-headers.png", assembled(header, header, *middle, end))
put("late-header.png", assembled(*middle, header, end))
put("data-before-palette.png", assembled(header, *data_chunks, *rest, end))
put("bad-checksum.png", assembled(header, *middle[:-1], middle[-1][:-4] + b"\0\0\0\0", end))
put("unknown-critical.png", assembled(header, chunk(b"QUXX", b"?"), *middle, end))
put("endless-chunk.png", assembled(header, struct.pack(">I", 0x7FFFFFFF) + b"tEXt" + b"x" * 50))
put("bad-profile.png", assembled(header, chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile")), *middle, end))
put("text-bomb.png", assembled(header, chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(30_000_000), 9)), *middle, end))
for width, height in ((0, 0), (0, 5), (60000, 60000), (0x7FFFFFFF, 1), (300, 220), (75, 55)):
    body = bytearray(header[8:21])
    body[:8] = struct.pack(">II", width, height)
    put(f"claims-{width}x{height}.png", assembled(chunk(b"IHDR", bytes(body)), *middle, end))
for depth, colour in ((3, 2), (16, 3), (8, 1), (1, 6)):
    body = bytearray(header[8:21])
    body[8], body[9] = depth, colour
    put(f"depth{depth}-colour{colour}.png", assembled(chunk(b"IHDR", bytes(body)), *middle, end))

# JPEG: another size in the frame header.
plain = bytearray(BASES["plain.jpg"])
frame = plain.index(b"\xff\xc0") + 5
for height, width in ((0, 150), (65535, 65535), (300, 300), (60, 80)):
    plain[frame:frame + 4] = struct.pack(">HH", height, width)
    put(f"claims-{width}x{height}.jpg", bytes(plain))
# GIF: a frame beyond the screen, and a screen of nothing.
still = bytearray(BASES["still.gif"])
for width, height in ((0, 0), (10, 10), (65535, 65535)):
    still[6:10] = struct.pack("<HH", width, height)
    put(f"screen-{width}x{height}.gif", bytes(still))

for width, height in ((1, 1), (1, 2), (2, 1), (7, 3), (31, 31), (32, 31), (1569, 10), (3000, 100), (2000, 30), (1, 20000),
                      (20000, 2), (60000, 1), (1, 60000), (64, 30000), (1568, 1568), (1569, 1569), (8000, 40)):
    size = f"{width}x{height}"
    bar = Image.new("RGB", (width, height), (200, 220, 240))
    bar.putpixel((width - 1, height - 1), (10, 20, 30))
    put(f"{size}.png", saved(bar, format="PNG"))
    put(f"{size}.jpg", saved(bar, format="JPEG", quality=80))
    put(f"{size}.gif", saved(bar.quantize(4), format="GIF"))
    put(f"{size}.bmp", saved(bar, format="BMP"))
    put(f"{size}-clear.png", saved(Image.new("RGBA", (width, height), (9, 9, 9, 0)), format="PNG"))
    if max(width, height) <= 16383:
        put(f"{size}.webp", saved(bar, format="WEBP", quality=80))
put("empty.png", b"")
put("nothing.jpg", b"\xff\xd8\xff")
put("words.png", b"this is no picture at all")
json.dump(names, sys.stdout)
