"""A small authorization server on loopback: metadata, keys, sign-in, introspection; tokens, good ones and others."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def public(key: Any, key_id: str, **more: Any) -> dict[str, Any]:
    """Return the public half of a key, as an authorization server publishes it."""
    kinds = ((rsa.RSAPrivateKey, RSAAlgorithm), (ec.EllipticCurvePrivateKey, ECAlgorithm))
    algorithm = next((made for kind, made in kinds if isinstance(key, kind)), OKPAlgorithm)
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, **more}


class Login:
    """The authorization server.

    Attributes:
        keys: What it publishes.
        metadata: What its metadata has beside, or in place of, what it should.
        broken: Paths that answer 500.
        asked: How often each path was asked for.
        active: Claims of the opaque tokens that are valid.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.keys = [public(RSA, "rsa"), public(EC, "ec"), public(ED, "ed")]
        self.metadata: dict[str, Any] = {}
        self.places = {f"/.well-known/oauth-authorization-server{path}"}
        self.broken: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.active: dict[str, dict[str, Any]] = {}
        self.forms: list[tuple[str | None, dict[str, str]]] = []
        self.raw: dict[str, bytes] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.url = ""

    @property
    def issuer(self) -> str:
        return f"{self.url}{self.path}"

    def token(
        self, audience: Any, key: Any = RSA, algorithm: str = "RS256", *, header: Any = None, **claims: Any
    ) -> str:
        """Return a token that is good, but for what is said; a claim that is None is left out."""
        now = time.time()
        kid = {"RS256": "rsa", "ES256": "ec", "EdDSA": "ed"}.get(algorithm, "rsa")
        made = {"iss": self.issuer, "aud": audience, "sub": "ann", "client_id": "app", "iat": now, "exp": now + 600}
        made |= {"scope": "mcp", **claims}
        head = {"kid": kid, "typ": "at+jwt", **(header or {})}
        given = {name: value for name, value in made.items() if value is not None}
        return jwt.encode(given, key, algorithm, {name: value for name, value in head.items() if value is not None})

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked[path] += 1
        if path in self.broken:
            return 500, b"{}"
        if path in self.raw:
            return 200, self.raw[path]
        if path == "/jwks":
            return 200, json.dumps({"keys": self.keys}).encode()
        if path in self.places:
            found = {
                "issuer": self.issuer,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                **self.metadata,
            }
            return 200, json.dumps(found).encode()
        return 404, b"{}"

    def register(self, body: bytes) -> tuple[int, bytes]:
        """Register a client, as it describes itself."""
        return 201, json.dumps({**json.loads(body), "client_id": "app"}).encode()

    def authorize(self, query: dict[str, str]) -> str:
        """Return where a user is sent who has consented at once."""
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def exchange(self, form: dict[str, str]) -> tuple[int, bytes]:
        """Return a token for a code: for the resource and the scopes that were asked for, to who asked."""
        asked = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if proof != asked["code_challenge"] or form["resource"] != asked["resource"]:
            return 400, b'{"error": "invalid_grant"}'
        scope = asked.get("scope", "")
        token = self.token(form["resource"], scope=scope)
        return 200, json.dumps(
            {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": scope}
        ).encode()

    def introspect(self, authorization: str | None, form: dict[str, str]) -> tuple[int, bytes]:
        self.asked["/introspect"] += 1
        self.forms.append((authorization, form))
        if "/introspect" in self.broken:
            return 500, b"{}"
        claims = self.active.get(form["token"])
        return 200, json.dumps({"active": False} if claims is None else {"active": True, **claims}).encode()


@contextmanager
def login(path: str = "") -> Iterator[Login]:
    """Run an authorization server on a free port."""
    made = Login(path)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(*made.answer(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            if self.path == "/register":
                self._send(*made.register(body.encode()))
            elif self.path == "/token":
                self._send(*made.exchange(form))
            else:
                self._send(*made.introspect(self.headers["authorization"], form))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    serving.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
