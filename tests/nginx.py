"""nginx in front of a server, on loopback, with a configuration of a test's own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PROGRAM = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
needs_nginx = pytest.mark.skipif(_PROGRAM is None, reason="nginx is not installed")

_CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    {locations}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, port: int, locations: str) -> Iterator[None]:
    """Run nginx with these locations."""
    assert _PROGRAM is not None
    file = folder / "nginx.conf"
    file.write_text(_CONFIGURATION.format(folder=folder, port=port, locations=locations), "utf-8")
    process = subprocess.Popen([_PROGRAM, "-p", str(folder), "-e", "stderr", "-c", str(file)], stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.communicate()
