#!/bin/sh
# Make an environment with snorkel alone, .venv-snorkel; bench_labeling.py compares with it.
# torch is pinned: without a version, pip may choose a build that is gigabytes larger.
set -eu
folder="$(cd "$(dirname "$0")/.." && pwd)/.venv-snorkel"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet "torch==2.13.0" "snorkel==0.10.0"
"$folder/bin/python" -c "import importlib.metadata as m; print('snorkel', m.version('snorkel'), 'pandas', m.version('pandas'))"
