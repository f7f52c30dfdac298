"""Universal weak supervision: many noisy opinions in, one good label per item out, for any kind of label.

>>> import consilience as cs
>>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
>>> cs.LabelModel(cs.Classes(2)).fit(votes).predict(votes)[:4].tolist()
[0, 1, 0, 1]
"""

from consilience.kernel_cache import provide_cache_folder
from consilience.lazy import on_first_use

provide_cache_folder()  # kernels are imported later, where they are used

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = on_first_use(__name__)
