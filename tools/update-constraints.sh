#!/bin/sh
# Writes constraints.txt: the newest releases that pyproject.toml allows on the oldest Python, which run on the others.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$(tools/find-python.sh 3.11)" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip --disable-pip-version-check install --quiet --editable '.[dev,bench]'
"$scratch/venv/bin/python" -m pip freeze --exclude-editable >"$scratch/frozen"
{
    echo '# The releases that make installs, on Python 3.11 to 3.13. pyproject.toml has the ranges that are supported.'
    cat "$scratch/frozen"
} >constraints.txt
