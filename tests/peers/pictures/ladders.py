"""How others make a picture ready: the reference agent's ladder, and Pillow used well.

Both take the bytes of a file and answer `(bytes, media_type)` of what would be embedded.
"""

import base64
import io

from PIL import Image, ImageOps

BUDGET = 262_144
SIDE = 1568
FLOOR = 64
ROUNDS = 5
QUALITIES = (85, 70, 50)


def url_length(data, media_type):
    """Characters of the data URL; it is built, as the agents do that have to send it."""
    return len(f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}")


def fits_unchanged(data, budget, side):
    if len(data) * 4 // 3 + 100 > budget:
        return False
    with Image.open(io.BytesIO(data)) as image:
        media_type = Image.MIME.get(image.format, "application/octet-stream")
        return max(image.size) <= side and url_length(data, media_type) <= budget


def halved(width, height):
    """One round's step: each side halves, no side goes below the floor."""
    half_width, half_height = max(width // 2, FLOOR), max(height // 2, FLOOR)
    if half_width == FLOOR:
        half_height = max(int(height * (FLOOR / width)), FLOOR)
    elif half_height == FLOOR:
        half_width = max(int(width * (FLOOR / height)), FLOOR)
    return half_width, half_height


def reference(data, budget=BUDGET, side=SIDE):
    """The halving ladder of the specification, 2.8, with JPEG forced."""
    if fits_unchanged(data, budget, side):
        with Image.open(io.BytesIO(data)) as image:
            return data, Image.MIME[image.format]
    image = Image.open(io.BytesIO(data))
    if image.mode not in ("RGB", "L"):
        image = image.convert("RGB")
    size = image.size
    encoded = b""
    for step in range(ROUNDS):
        if step > 0:
            smaller = halved(*image.size)
            if smaller == size:
                break
            image = image.resize(smaller, Image.LANCZOS)
            size = smaller
        for quality in QUALITIES:
            buffer = io.BytesIO()
            image.save(buffer, format="JPEG", quality=quality)
            encoded = buffer.getvalue()
            if url_length(encoded, "image/jpeg") <= budget and max(image.size) <= side:
                return encoded, "image/jpeg"
    return encoded, "image/jpeg"


def used_well(data, budget=BUDGET, side=SIDE):
    """Pillow as its documentation recommends: scaled decoding, upright, one Lanczos step, white
    below alpha, then JPEG qualities until one fits."""
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (side, side))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image.thumbnail((side, side), Image.LANCZOS)
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image).convert("RGB")
    else:
        if image.mode not in ("RGB", "L"):
            image = image.convert("RGB")
        orientation = image.getexif().get(0x0112)
        image.thumbnail((side, side), Image.LANCZOS)
        if orientation not in (None, 1):
            image = ImageOps.exif_transpose(image)
    encoded = b""
    for quality in (85, 70, 50, 35, 20):
        buffer = io.BytesIO()
        image.save(buffer, format="JPEG", quality=quality)
        encoded = buffer.getvalue()
        if url_length(encoded, "image/jpeg") <= budget:
            break
    return encoded, "image/jpeg"
