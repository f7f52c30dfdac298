"""Points of manifolds: hyperbolic space, spheres, rotations, covariance matrices, and geometries of the user."""
