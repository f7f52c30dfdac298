"""
FiniteMetric: products in a taxonomy
====================================

Seven sources put 250 products into a tree of twelve categories. A wrong category costs as many steps as it is away.
Two shops take their categories from the same catalog: they are framed, and what they share counts once.
"""

from matplotlib import pyplot

import consilience as cs

products = cs.datasets.load_products()
model = cs.LabelModel(products.space, dependencies=[("shop_a", "shop_b")]).fit(products.votes)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.agreement(model, products.votes, left)
cs.plot.compare(model, products.votes, products.truth, right)
