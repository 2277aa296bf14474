"""Pillow as a worker of the bench: one JSON request a line on stdin, one answer a line.

`{"load": path}` keeps a file's bytes; `{"run": "ladder" | "well", "path"}` makes that picture ready
and answers `{"wall_ms", "cpu_ms", "bytes", "what"}`.
"""

import base64
import io
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/peers/pictures"))

from PIL import Image

import ladders

WAYS = {"ladder": ladders.reference, "well": ladders.used_well}
loaded = {}


def answer(request):
    if "load" in request:
        loaded[request["load"]] = Path(request["load"]).read_bytes()
        return {}
    data = loaded[request["path"]]
    wall, cpu = time.perf_counter(), time.process_time()
    out, media_type = WAYS[request["run"]](data)
    url = f"data:{media_type};base64,{base64.b64encode(out).decode('ascii')}"
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    with Image.open(io.BytesIO(out)) as image:
        what = f"{image.format.lower()} {image.width}x{image.height}"
    return {"wall_ms": wall * 1000, "cpu_ms": cpu * 1000, "bytes": len(url), "what": what}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
