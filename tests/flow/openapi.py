# SPDX-License-Identifier: Apache-2.0
"""docs/http.openapi.yaml as a judge of answers."""
import os
import re

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

with open(os.path.join(ROOT, "docs", "http.openapi.yaml"), encoding="utf-8") as handle:
    API = yaml.safe_load(handle)

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}


def resolve(schema):
    while "$ref" in schema:
        found = API
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def faults(value, schema, where="answer"):
    """What of the value the schema does not allow; the part of JSON Schema that the file uses."""
    schema = resolve(schema)
    if "oneOf" in schema:
        fitting = [option for option in schema["oneOf"] if not list(faults(value, option, where))]
        if not fitting:
            yield f"{where}: fits none of {len(schema['oneOf'])} options: {value}"
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_kind = [isinstance(value, KINDS[k]) and not (isinstance(value, bool) and k != "boolean") for k in kinds]
    if kinds and not any(is_kind):
        yield f"{where}: {value!r} is no {kinds}"
        return
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not one of them"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        yield f"{where}: {value} is below the minimum"
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{where}[{at}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: {name} is missing"
        for name, member in value.items():
            if name not in known and schema.get("additionalProperties") is False:
                yield f"{where}: {name} is not in the document"
            yield from faults(member, known.get(name, {}), f"{where}.{name}")


def documented(answer, path, method="get"):
    """Asserts that this answer is one of those the document has for its route."""
    responses = API["paths"][path][method]["responses"]
    assert str(answer.status) in responses, (path, answer)
    response = resolve(responses[str(answer.status)])
    kind = answer.headers.get("content-type", "").split(";")[0]
    assert not answer.text or kind in response["content"], (path, kind)
    if answer.json is not None:
        assert list(faults(answer.json, response["content"][kind].get("schema", {}))) == []
    for name, header in response.get("headers", {}).items():
        if name.lower() in answer.headers and "const" in resolve(header)["schema"]:
            assert answer.headers[name.lower()] == resolve(header)["schema"]["const"]
    return answer


def route(target):
    """The path of the document that this request target is of, or None."""
    bare = target.split("?")[0]
    for path in sorted(API["paths"], key=lambda path: path.count("{")):
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), bare):
            return path
    return None
