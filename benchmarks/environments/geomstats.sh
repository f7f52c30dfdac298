#!/bin/sh
# Makes the environment in which bench_frechet.py times geomstats: benchmarks/environments/.cache/geomstats.
# geomstats 2.8.0 does not import under numpy 2.4, so it cannot share the environment of consilience.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder="$here/.cache/geomstats"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check 'geomstats==2.8.0' 'numpy==2.2.6' 'scipy==1.15.3'
echo "$folder/bin/python"
