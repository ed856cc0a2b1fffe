#!/bin/sh
# Makes a virtual environment, or brings it up to date, with this project installed in it for editing.
#
#   make-venv.sh DIRECTORY base|test|dev [PYTHON]
#
# The releases installed are those of constraints.txt. DIRECTORY/base, /test and /dev are the stamps that the
# Makefile compares with pyproject.toml and constraints.txt.
set -eu

venv=$1 extras=$2
python=${3:-$("$(dirname "$0")/find-python.sh")}
cd "$(dirname "$0")/.."

# Debian splits ensurepip off into python3-venv, so a Python that can make a venv may be unable to put pip into it.
create_venv() {
    if "$python" -m venv --clear "$venv" >/dev/null 2>&1; then
        return
    fi
    rm -rf "$venv"
    if command -v uv >/dev/null; then
        uv venv --quiet --seed --python "$python" "$venv"
    elif command -v virtualenv >/dev/null; then
        virtualenv --quiet --python "$python" "$venv"
    elif "$python" -m venv --without-pip "$venv" && pip_outside --version >/dev/null 2>&1; then
        pip_outside --python "$venv/bin/python" install --quiet pip
    else
        rm -rf "$venv"
        echo "This Python cannot make a virtual environment. Run: sudo apt-get install -y python3-venv" >&2
        exit 1
    fi
}

# A pip that is not in the venv: the interpreter's own, or the wheel that Debian keeps for others to start from.
pip_outside() {
    if "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip "$@"
    else
        PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) "$python" -m pip "$@"
    fi
}

pip_inside() {
    "$venv/bin/python" -m pip --disable-pip-version-check "$@"
}

pip_inside --version >/dev/null 2>&1 || create_venv
case $extras in
    base) target=. ;;
    *) target=".[$extras]" ;;
esac
pip_inside install --quiet --constraint constraints.txt --editable "$target"
touch "$venv/base" "$venv/$extras"
