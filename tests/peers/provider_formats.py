"""Judges rendered results with the types of the providers' own SDKs.

Reads one JSON object a line, `{"id", "format", "body"}`; writes one a line,
`{"id", "fault", "images"}`: `fault` is null or says why the provider would refuse the body,
`images` lists type and size of every picture in it.

The request types of `anthropic` and `openai` are typed dictionaries, which pydantic checks lazily
and without refusing unknown keys; `conform` walks their annotations itself and does both. The
models of `google-genai` refuse unknown keys by themselves. Those of `mcp` drop them, so that a
body must come out of its model as it went in. OpenAI's own API takes no pictures in tool messages
and its types say so; for the aggregators that do, such a message is held against the type of a
user message, which has the same parts.
"""

import base64
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Union

import mcp.types
from anthropic.types import ToolResultBlockParam
from google.genai import types as genai
from openai.types.chat import (
    ChatCompletionToolMessageParam, ChatCompletionUserMessageParam,
)
from openai.types.responses.response_input_item_param import FunctionCallOutput
from PIL import Image
from typing_extensions import (
    Annotated, Literal, NotRequired, Required, get_args, get_origin, get_type_hints, is_typeddict,
)

COMMON = {"image/png", "image/jpeg", "image/webp", "image/gif"}
TYPES = {"gemini": {"image/png", "image/jpeg", "image/webp"}}
# Published limits: base64 of one picture, longest side.
LIMITS = {
    "anthropic": (5 * 1024 * 1024, 8000),
    "openai-responses": (50_000_000, 10_000),
    "openai-chat": (50_000_000, 10_000),
    "gemini": (20_000_000, 10_000),
}
PILLOW = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


class Fault(Exception):
    """Why a body would be refused."""


def conform(value, kind, at="body"):
    """Holds a value against an annotation, strictly."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired, Annotated):
        return conform(value, args[0], at)
    if origin in (Union, UnionType):
        faults = []
        for option in args:
            try:
                return conform(value, option, at)
            except Fault as fault:
                faults.append(str(fault))
        raise Fault(f"{at} fits none of {len(args)} kinds: {'; '.join(faults)}"[:2000])
    if origin is Literal:
        if value not in args or isinstance(value, bool) != isinstance(args[0], bool):
            raise Fault(f"{at} is not one of {args}")
        return
    if is_typeddict(kind):
        return conform_object(value, kind, at)
    if origin in (list, Iterable) or getattr(origin, "__name__", "") == "Iterable":
        if not isinstance(value, list):
            raise Fault(f"{at} is no list")
        for index, item in enumerate(value):
            conform(item, args[0], f"{at}[{index}]")
        return
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise Fault(f"{at} is no object")
        return
    if kind in (None, NoneType):
        if value is not None:
            raise Fault(f"{at} is not null")
        return
    if kind is Any or kind is object:
        return
    if kind in (str, bool, int, float):
        is_bool = isinstance(value, bool)
        if not isinstance(value, kind) or (is_bool and kind is not bool):
            raise Fault(f"{at} is no {kind.__name__}")
        return
    # A file object or a path; nothing of that kind is ever in JSON.
    raise Fault(f"{at} would have to be {kind}")


def conform_object(value, kind, at):
    if not isinstance(value, dict):
        raise Fault(f"{at} is no object")
    hints = get_type_hints(kind, include_extras=True)
    total = kind.__total__
    for key, hint in hints.items():
        required = get_origin(hint) is Required or (total and get_origin(hint) is not NotRequired)
        if required and key not in value:
            raise Fault(f"{at}.{key} is missing")
    for key, item in value.items():
        if key not in hints:
            raise Fault(f"{at}.{key} is unknown")
        conform(item, hints[key], f"{at}.{key}")


def wordy(text, at):
    if not text.strip():
        raise Fault(f"{at} is blank")


def data_url(url):
    match = re.fullmatch(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/]+={0,2})", url)
    if not match:
        raise Fault("a picture is no data URL")
    return match.groups()


def anthropic(body):
    conform(body, ToolResultBlockParam)
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", body["tool_use_id"]):
        raise Fault("tool_use_id has characters that the API refuses")
    parts = body["content"]
    if isinstance(parts, str):
        wordy(parts, "content")
        return
    for part in parts:
        if part["type"] == "text":
            wordy(part["text"], "a text part")
        elif body.get("is_error"):
            raise Fault("all content must be type text if is_error is true")
        else:
            source = part["source"]
            yield source["media_type"], source["data"]


def openai_responses(body):
    conform(body, FunctionCallOutput)
    if not body.get("call_id"):
        raise Fault("call_id is missing")
    parts = body["output"]
    if isinstance(parts, str):
        wordy(parts, "output")
        return
    for part in parts:
        if part["type"] == "input_text":
            wordy(part["text"], "a text part")
        else:
            yield data_url(part["image_url"])


def openai_chat(body):
    if not isinstance(body, list) or not 1 <= len(body) <= 2:
        raise Fault("a list of one or two messages was expected")
    tool, *user = body
    if isinstance(tool.get("content"), str):
        conform(tool, ChatCompletionToolMessageParam)
    else:
        call_id = tool.get("tool_call_id")
        as_user = {key: item for key, item in tool.items() if key != "tool_call_id"}
        conform(call_id, str, "tool_call_id")
        conform(as_user | {"role": "user"}, ChatCompletionUserMessageParam)
        conform(tool["role"], Literal["tool"], "role")
    for message in user:
        conform(message, ChatCompletionUserMessageParam)
    for message in body:
        parts = message["content"]
        if isinstance(parts, str):
            wordy(parts, "content")
            continue
        for part in parts:
            if part["type"] == "text":
                wordy(part["text"], "a text part")
            else:
                yield data_url(part["image_url"]["url"])


def gemini(body):
    part = genai.Part.model_validate_json(json.dumps(body))
    response = part.function_response
    if response is None or not response.name:
        raise Fault("functionResponse has no name")
    if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", response.name):
        raise Fault("the name has characters that the API refuses")
    for key in response.response:
        wordy(response.response[key], key)
    for media, raw in zip(response.parts or [], body["functionResponse"].get("parts", [])):
        data = raw["inlineData"]["data"]
        if media.inline_data.data != base64.b64decode(data, validate=True):
            raise Fault("the SDK reads other bytes")
        yield media.inline_data.mime_type, data


def mcp_result(body):
    result = mcp.types.CallToolResult.model_validate(body)
    again = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if again != body:
        raise Fault(f"the SDK reads {again} out of it"[:2000])
    for block in result.content:
        if block.type == "text":
            wordy(block.text, "a text block")
        elif block.type == "image":
            yield block.mime_type, block.data


JUDGES = {
    "anthropic": anthropic,
    "openai-responses": openai_responses,
    "openai-chat": openai_chat,
    "gemini": gemini,
    "mcp": mcp_result,
}


def picture(form, media_type, data):
    """Decodes a picture and holds it against the limits of its provider."""
    if media_type not in TYPES.get(form, COMMON):
        raise Fault(f"{media_type} is not taken")
    characters, side = LIMITS.get(form, (50_000_000, 10_000))
    if len(data) > characters:
        raise Fault(f"{len(data)} characters of one picture")
    raw = base64.b64decode(data, validate=True)
    with Image.open(io.BytesIO(raw)) as image:
        image.load()
        if PILLOW.get(image.format) != media_type:
            raise Fault(f"declared as {media_type}, but the bytes are {image.format}")
        if getattr(image, "n_frames", 1) != 1:
            raise Fault("the picture is animated")
        if max(image.size) > side:
            raise Fault(f"{image.size} is too large")
        return {"media_type": media_type, "width": image.width, "height": image.height}


def judge(form, body):
    images = [picture(form, *one) for one in JUDGES[form](body)]
    if len(images) > 4:
        raise Fault(f"{len(images)} pictures")
    return images


for line in sys.stdin:
    case = json.loads(line)
    fault, images = None, []
    try:
        images = judge(case["format"], case["body"])
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    print(json.dumps({"id": case["id"], "fault": fault, "images": images}), flush=True)
