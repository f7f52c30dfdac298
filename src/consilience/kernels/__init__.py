"""Compiled inner loops: plain functions on arrays, the only place where numba is imported.

Each is tested against a brute-force twin in ``tests/kernels``. Import them inside the function that
needs them: numba costs more to import than the whole rest of the package.
"""
