"""
FiniteMetric: products in a taxonomy
====================================

Seven sources place 250 products in a tree of twelve categories. The cost of a wrong category is its distance in the
tree. Two shops use the same catalog. A frame marks them, and their shared errors count once.
"""

import consilience as cs

products = cs.datasets.load_products()
model = cs.LabelModel(products.space, dependencies=[("shop_a", "shop_b")]).fit(products.votes)

# sphinx_gallery_thumbnail_number = 1
cs.plot.agreement(model, products.votes)
cs.plot.compare(model, products.votes, products.truth)
