#!/bin/sh
# Makes the environment in which bench_peers.py times crowd-kit: benchmarks/environments/.cache/crowdkit.
# torch is pinned: without a version, pip may choose a build that is gigabytes larger.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder="$here/.cache/crowdkit"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check 'torch==2.13.0' 'crowd-kit==1.4.2'
echo "$folder/bin/python"
