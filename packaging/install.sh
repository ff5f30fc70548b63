#!/bin/sh
# install.sh ENVIRONMENT ARGUMENT...: install into a virtual environment what the arguments of `pip install` name.
# uv takes a fifth of pip's time. pip does it where uv cannot, as uv does not read how pip finds its packages.
set -eu
python=$1/bin/python
uv=$1/bin/uv
shift
"$python" -m pip --disable-pip-version-check --quiet install uv==0.13.9 &&
    "$uv" pip install --quiet --compile-bytecode --python "$python" "$@" ||
    "$python" -m pip --disable-pip-version-check --quiet install "$@"
