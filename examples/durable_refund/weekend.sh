#!/bin/sh
# What `make demo-durable` runs: a refund that waits from Friday to Monday, and processes that share a file.
# `weekend.sh BIN` takes python and toolcrib from BIN.
set -eu

bin=$(cd "${1:?the folder that python and toolcrib are in}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export SHOP_DB=shop.db TOOLCRIB_DATABASE=toolcrib.db

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "Friday: the agent asks for a refund, and its process ends"
"$bin/python" "$here/refund.py" ask | tee asked

say "A person looks at it, at another terminal, and says yes"
"$bin/toolcrib" approvals list
request=$("$bin/toolcrib" approvals list --json | sed -n 's/^ *"id": "\(ask_[0-9a-f]*\)".*/\1/p')
token=$("$bin/python" "$here/refund.py" token ann)
TOOLCRIB_APPROVER_TOKEN=$token "$bin/toolcrib" approvals approve "$request" --yes

say "Monday: another process goes on with it"
"$bin/python" "$here/refund.py" go-on "$(sed -n 's/^turn //p' asked)"

say "What is kept of it"
"$bin/toolcrib" workflows list
