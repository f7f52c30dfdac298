"""The equations of the label model, solved on arrays.

Pair quantities of the sources go in, one number per source comes out; nothing here knows what a
label is. ``isotropic`` (Algorithm 4 of the paper), ``triplets`` (Algorithm 2), ``quadratic``
(Algorithm 3) and ``robust`` (any pair moment) learn how good sources are; ``backward`` turns
expected costs into weights; ``landmarks`` embeds labels from their distances; ``sharing`` and
``signal`` handle copied sources and the absence of any signal; ``pairs`` says which sources the
usable pairs determine. Import the modules by name: nothing is re-exported.
"""
