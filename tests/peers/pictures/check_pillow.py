"""What Pillow thinks of pictures that left.

Reads a JSON list of `{"path", "media_type", "width", "height", "source"?}` on stdin; writes a JSON
list of the same length: `{"wrong": str | null, "difference": float | null}`. `difference` is the mean
distance, in levels of 255, to Pillow's own upright first frame of `source` on white.
"""

import json
import sys

import numpy as np
from PIL import Image, ImageOps, ImageSequence

Image.MAX_IMAGE_PIXELS = None
GRID = (48, 48)


def on_white(image):
    if image.mode.startswith("I;16") or image.mode == "I":
        image = Image.fromarray((np.asarray(image).astype(np.uint32) // 257).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def grid(image):
    return np.asarray(image.resize(GRID, Image.BOX), float)


def wrong(picture):
    with Image.open(picture["path"]) as image:
        if image.get_format_mimetype() != picture["media_type"]:
            return f"is {image.get_format_mimetype()}, declared {picture['media_type']}"
        if image.size != (picture["width"], picture["height"]):
            return f"is {image.size}, declared {picture['width']}x{picture['height']}"
        for frame in ImageSequence.Iterator(image):
            frame.load()
    return None


def judge(picture):
    try:
        fault = wrong(picture)
    except Exception as error:
        fault = f"Pillow: {type(error).__name__}: {error}"
    difference = None
    if fault is None and "source" in picture:
        with Image.open(picture["source"]) as source, Image.open(picture["path"]) as image:
            upright = on_white(ImageOps.exif_transpose(source))
            # Without the metadata: a model's provider may or may not heed it.
            shown = on_white(image)
            difference = float(np.abs(grid(upright) - grid(shown)).mean())
    return {"wrong": fault, "difference": difference}


json.dump([judge(picture) for picture in json.load(sys.stdin)], sys.stdout)
