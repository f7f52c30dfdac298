"""Experiments about the claims of the paper, and about ours."""

import os
import sys

# Every process computes in one thread: networks learned in several threads differ in the last digits, and threads of
# several processes wait for each other (films ranked by networks took twelve times as long). Libraries read this when
# they are loaded, so it changes nothing where the caller has loaded them.
if "numpy" not in sys.modules:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
