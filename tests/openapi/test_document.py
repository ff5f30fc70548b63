"""Documents: YAML and JSON, versions, and what references may lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed
from toolcrib.errors import DocumentError
from toolcrib.openapi import toolset

SWAGGER = {"swagger": "2.0", "info": {"title": "Old", "version": "1"}, "paths": {}}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "n": {"type": "integer"}}}


def body_of(ref: str) -> dict[str, Any]:
    """Return a document whose one operation takes a body that a reference describes."""
    content = {"content": {"application/json": {"schema": {"$ref": ref}}}}
    return document({"/things": {"post": operation("make", requestBody=content)}})


@contextmanager
def served(files: dict[str, Any], asked: list[str]) -> Iterator[str]:
    """Serve files as JSON on loopback; a text is an address to which it redirects."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = files.get(self.path)
            self.send_response(404 if found is None else 302 if isinstance(found, str) else 200)
            if isinstance(found, str):
                self.send_header("Location", found)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_swagger_2_is_an_error_that_names_the_mend() -> None:
    with pytest.raises(DocumentError, match=r"is written in Swagger 2\.0, .*npx swagger2openapi"):
        toolset(SWAGGER)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "it is not an object"),
        ("{}", "has no field `openapi`"),
        ("openapi: 4.0.0", "says `openapi: 4.0.0`"),
        ("a: [", "neither JSON nor YAML"),
        ("a: &a [*a]", "an alias that leads into itself"),
        ("openapi: 3.0.0\npaths: !!python/object:os.system {}", "neither JSON nor YAML"),
        ('{"openapi":' * 100_000 + "1" + "}" * 100_000, "nested too deep"),
        ("openapi: " + "{a: " * 100_000 + "1" + "}" * 100_000, "nested too deep"),
        ("openapi:\n  " + "- " * 100_000 + "1", "nested too deep"),
    ],
)
def test_a_file_that_is_no_document_is_an_error_that_says_why(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(text, "utf-8")

    with pytest.raises(DocumentError, match=problem):
        toolset(file)


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "api.yaml"
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    file.write_text("\n".join(["openapi: 3.0.0", "l0: &l0 [x]", *levels]), "utf-8")

    with pytest.raises(DocumentError, match="comes to too much"):
        toolset(file)


async def test_texts_of_yaml_stay_texts(tmp_path: Path) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(
        "openapi: 3.0.3\ninfo: {title: T, version: 2024-01-01}\nservers: [{url: http://api.test}]\npaths:\n"
        "  /c/{country}:\n    get:\n      operationId: c\n      parameters:\n"
        "        - {name: country, in: path, schema: {type: string, enum: [NO, on, 2024-01-01, 0123]}}\n"
        "      responses:\n        200: {description: fine}\n",
        "utf-8",
    )

    tools = toolset(file)

    assert tools["c"].parameters["properties"]["country"]["enum"] == ["NO", "on", "2024-01-01", "0123"]


def test_a_reference_that_leads_into_itself_is_a_definition_that_holds_itself() -> None:
    found = body_of("#/components/schemas/Node") | {"components": {"schemas": {"Node": NODE}}}

    schema = toolset(found)["make"].parameters

    assert schema["properties"]["body"]["$ref"] == "#/$defs/Node"
    assert schema["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


async def test_a_value_of_a_schema_that_holds_itself_is_checked_to_its_end() -> None:
    server = StandIn(body_of("#/components/schemas/Node") | {"components": {"schemas": {"Node": NODE}}}, checks=False)

    good = await server.call("make", {"body": {"next": {"next": {"n": 1}}}})
    bad = await server.call("make", {"body": {"next": {"next": {"n": "one"}}}})

    assert isinstance(good, Completed)
    assert "body.next.next.n: must be an integer" in bad.text()
    assert len(server.requests) == 1


@pytest.mark.parametrize("ref", ["#/components/schemas/Gone", "#/paths/~1things/post/x", "#/%zz"])
def test_an_operation_whose_reference_leads_nowhere_is_an_error(ref: str) -> None:
    with pytest.raises(DocumentError, match="there is nothing"):
        toolset(body_of(ref), refused="raise")


def test_references_that_lead_in_a_circle_are_an_error() -> None:
    circle = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    found = document({"/x": {"get": operation("x", [{"$ref": "#/components/parameters/a"}])}})

    with pytest.raises(DocumentError, match="in a circle"):
        toolset(found | {"components": {"parameters": circle}}, refused="raise")


def test_an_operation_that_cannot_be_read_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    paths = {"/x": {"get": operation("x", [{"$ref": "#/gone"}])}, "/y": {"get": operation("y")}}

    tools = toolset(document(paths))

    assert tools.names() == ["y"]
    assert "its operation `x`" in caplog.text


def test_a_reference_leads_to_a_file_in_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "node.yaml").write_text("Node: {type: object, properties: {id: {$ref: id.yaml}}}", "utf-8")
    (tmp_path / "parts" / "id.yaml").write_text("type: integer", "utf-8")
    (tmp_path / "api.json").write_text(json.dumps(body_of("parts/node.yaml#/Node")), "utf-8")

    schema = toolset(tmp_path / "api.json")["make"].parameters

    assert schema["$defs"]["Node"]["properties"]["id"]["$ref"] == "#/$defs/id_yaml"
    assert schema["$defs"]["id_yaml"] == {"type": "integer"}


@pytest.mark.parametrize(
    "ref", ["../secret.json", "file:///etc/passwd", "http://127.0.0.1:9/a.json", "inside/../../secret.json"]
)
def test_a_reference_to_another_place_is_refused(tmp_path: Path, ref: str) -> None:
    (tmp_path / "secret.json").write_text('{"type": "string"}', "utf-8")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "api.json").write_text(json.dumps(body_of(ref)), "utf-8")

    with pytest.raises(DocumentError, match="allow_refs"):
        toolset(folder / "api.json", refused="raise")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"type": "string"}', "utf-8")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "inside.json").symlink_to(tmp_path / "secret.json")
    (folder / "api.json").write_text(json.dumps(body_of("inside.json")), "utf-8")

    with pytest.raises(DocumentError, match="allow_refs"):
        toolset(folder / "api.json", refused="raise")


def test_a_document_from_the_web_refers_to_its_own_host_alone() -> None:
    asked: list[str] = []
    files: dict[str, Any] = {"/node.json": NODE | {"properties": {}}}
    with served({"/secret.json": {"type": "string"}}, asked) as other, served(files, []) as own:
        files["/a.json"] = body_of("node.json") | {"servers": [{"url": "/v2"}]}
        files["/b.json"] = body_of(f"{other}/secret.json")

        made = toolset(f"{own}/a.json")["make"]
        with pytest.raises(DocumentError, match="allow_refs"):
            toolset(f"{own}/b.json", refused="raise")
        assert asked == []
        allowed = toolset(f"{own}/b.json", allow_refs=[other])["make"]

    assert made.tool.source is not None
    assert made.tool.source.get_call_metadata({}) == {"request": f"POST {own}/v2/things"}
    assert allowed.parameters["$defs"]["secret_json"] == {"type": "string"}


def test_a_document_that_moved_to_another_host_is_not_read_there() -> None:
    asked: list[str] = []
    with served({"/api.json": document({})}, asked) as other:
        place = f"{other.replace('127.0.0.1', 'localhost')}/api.json"
        with served({"/api.json": place}, []) as own, pytest.raises(DocumentError, match="has moved to"):
            toolset(f"{own}/api.json")

    assert asked == []


def test_parameters_of_a_path_are_those_of_its_operations_which_may_replace_them() -> None:
    item = {
        "parameters": [parameter("id", "path", {"type": "string"}), parameter("v", "query", {"type": "string"})],
        "get": operation("show", [parameter("v", "query", {"type": "integer"})]),
    }

    schema = toolset(document({"/things/{id}": item}))["show"].parameters

    assert schema["properties"] == {"id": {"type": "string"}, "v": {"type": "integer"}}
    assert schema["required"] == ["id"]


# --- operations that stand elsewhere

DELETE = operation("delete_things", [parameter("tag", "query", {"type": "string"}, required=True)], summary="Delete.")


def test_an_operation_may_be_a_reference_to_a_part_of_the_document() -> None:
    made = document({"/things": {"delete": {"$ref": "#/x-operations/delete"}}}, **{"x-operations": {"delete": DELETE}})

    tools = toolset(made)

    assert tools.names() == ["delete_things"]
    assert tools["delete_things"].tool.parameters["required"] == ["tag"]


def test_references_in_an_operation_of_another_file_are_read_from_there(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    own = parameter("own", "query", {"type": "integer"})
    elsewhere = {"delete": operation("drop", [{"$ref": "#/own"}]), "own": own}
    (tmp_path / "parts" / "drop.json").write_text(json.dumps(elsewhere))
    shared = {"parameters": [{"$ref": "#/shared"}], "delete": {"$ref": "parts/drop.json#/delete"}}
    made = document({"/things": shared}, shared=parameter("shared", "query", {"type": "boolean"}))
    (tmp_path / "api.json").write_text(json.dumps(made))

    parameters = toolset(tmp_path / "api.json")["drop"].tool.parameters["properties"]

    assert {name: part["type"] for name, part in parameters.items()} == {"shared": "boolean", "own": "integer"}


@pytest.mark.parametrize("ref", ["#/nowhere", "#/info/title", "#/paths/~1loop/get"])
def test_an_operation_that_refers_to_none_is_left_out_by_name(ref: str, caplog: pytest.LogCaptureFixture) -> None:
    loop = {"get": {"$ref": "#/paths/~1loop/get"}}
    made = document({"/a": {"get": operation("good")}, "/b": {"delete": {"$ref": ref}}, "/loop": loop})

    assert toolset(made).names() == ["good"]
    assert "`DELETE /b`" in caplog.text
    with pytest.raises(DocumentError, match="its operation"):
        toolset(made, refused="raise")


def test_the_bound_of_referenced_files_is_said_with_a_mend(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}.json").write_text(json.dumps(parameter(f"p{number}", "query", {"type": "string"})))
    refs = [{"$ref": f"{number}.json"} for number in range(201)]
    (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": operation("get", refs)}})))

    with pytest.raises(DocumentError, match=r"more than 200 other documents; put it into one file first, .*bundle"):
        toolset(tmp_path / "api.json")


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ({"$ref": "#/nowhere"}, "/x"),
        ({"$ref": "gone.json"}, "/x"),
        ({"$ref": "#/info/title"}, "/x"),
        ({"trace": operation("x")}, "TRACE /x"),
        ({"query": operation("x")}, "QUERY /x"),
        ({"additionalOperations": {"COPY": operation("x")}}, "ADDITIONALOPERATIONS /x"),
    ],
)
def test_a_path_that_cannot_be_read_is_left_out_by_name(
    item: dict[str, Any], where: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document({"/x": item, "/y": {"get": operation("y")}})))

    assert toolset(file).names() == ["y"]
    assert f"`{where}`" in caplog.text


def test_a_path_has_the_operations_beside_its_reference_too() -> None:
    spec = document({"/x/{id}": {"$ref": "#/x-paths/x", "post": operation("own")}})
    shared = [parameter("id", "path", {"type": "integer"}, required=True)]
    spec["x-paths"] = {"x": {"get": operation("referred"), "post": operation("other"), "parameters": shared}}

    tools = toolset(spec)

    assert set(tools.names()) == {"own", "referred"}
    assert all(tools[name].tool.parameters["properties"]["id"] == {"type": "integer"} for name in tools.names())
