"""How many of a picture's known words tesseract reads.

Reads a JSON list of readings on stdin, `{"id", "words", "pictures"}`: `words` is a file of the
words that are visible, a picture is `{"path", "box"?, "via"?, "size"?}`. `box` cuts a part out,
`via` is `lanczos` (a lossless picture of `size`) or `reference` (what the reference agent's ladder
would embed). Writes a JSON object from id to `{"read", "known"}`: words found, as a multiset over
all pictures of the reading, and words there are.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

import ladders

# What tesseract gets: the same for all, so that only what a picture still holds makes a difference.
LONG_SIDE = 3136
AT_ONCE = 2


def words(text):
    return Counter(word for word in re.split(r"[\W_]+", text.lower()) if len(word) >= 2)


def load(picture):
    with open(picture["path"], "rb") as file:
        data = file.read()
    if picture.get("via") == "reference":
        data, _ = ladders.reference(data)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    if "box" in picture:
        image = image.crop(picture["box"])
    if picture.get("via") == "lanczos":
        image = image.resize(picture["size"], Image.LANCZOS)
    return image


def read(image):
    scale = LONG_SIDE / max(image.size)
    large = image.resize([round(side * scale) for side in image.size], Image.BICUBIC)
    buffer = io.BytesIO()
    large.save(buffer, format="PPM")
    # Page segmentation 11: text anywhere, in no order. Windows and code have no columns.
    done = subprocess.run(
        ["tesseract", "stdin", "stdout", "-l", "eng", "--psm", "11"],
        input=buffer.getvalue(), capture_output=True, check=True,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
    )
    return words(done.stdout.decode())


def main():
    readings = json.load(sys.stdin)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = {}

        def reading_of(picture):
            """Pictures with the same pixels are read once."""
            image = load(picture)
            key = hashlib.sha256(repr(image.size).encode() + image.tobytes()).digest()
            if key not in started:
                started[key] = pool.submit(read, image)
            return started[key]

        waiting = [[reading_of(picture) for picture in reading["pictures"]]
                   for reading in readings]
        report = {}
        for reading, futures in zip(readings, waiting):
            with open(reading["words"]) as file:
                known = words(file.read())
            found = sum((future.result() for future in futures), Counter())
            report[reading["id"]] = {"read": (found & known).total(), "known": known.total()}
    json.dump(report, sys.stdout)


main()
