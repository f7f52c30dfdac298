#!/bin/sh
# Makes the environment in which bench_peers.py times flyingsquid: benchmarks/environments/.cache/flyingsquid.
# Its only release is of 2020 and names no packages. It needs pgmpy while that still had a MarkovModel, which in turn
# needs the names that numpy 2 and pandas 3 have dropped, and pkg_resources of older setuptools. Python 3.10 to 3.12.
# torch is pinned: without a version, pip may choose a build that is gigabytes larger.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder="$here/.cache/flyingsquid"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check 'torch==2.13.0' 'flyingsquid==0.0.0a0' \
    'pgmpy==0.1.19' 'numpy==1.26.4' 'pandas==2.2.3' 'scipy==1.15.3' 'setuptools==80.10.2'
"$folder/bin/python" -W ignore -c "import flyingsquid.label_model"
echo "$folder/bin/python"
