"""What to do about a finding, by its code: the short form of the table in docs/methods.md."""

from __future__ import annotations

__all__ = ["NEXT_STEPS"]

NEXT_STEPS = {
    "method": "",
    "too-few-sources": "Next: add sources, remove a dependency, or pass gold= with a few known labels.",
    "fell-back-to-majority": "Next: pass gold= with a few known labels.",
    "weights-unsupported": "Next: nothing, or pass gold= with a few known labels.",
    "drawn-together": "Next: nothing, or pass gold= with a few known labels.",
    "no-signal": "Next: check that a row means the same item for all sources; add better sources.",
    "never-votes": "Next: leave the source out, or check how its abstentions are coded.",
    "constant-source": "Next: leave it out; as a labeling function for one class it is fine.",
    "low-overlap": "Next: collect votes on common items, or pass gold=.",
    "adversarial-source": "Next: check how its labels are coded, or leave it out.",
    "dependent-pair": "Next: pass dependencies= with the pair, so that it does not count twice.",
    "shared-errors": "Next: keep the known labels; without them the confidence would be too high.",
    "competing-groups": "Next: pass gold= with about three known labels, or dependencies= with the wrong group.",
    "possible-copies": "Next: pass gold= with a few known labels, or dependencies= with the pairs that copy.",
    "scale-not-identified": "Next: give mean= (and for Scores variance=) to the label type, or pass gold=.",
    "curvature": "Next: use method='auto', and fit(votes).",
    "heavy-tails": "Next: look at the far votes; outliers were allowed for.",
    "heywood": "Next: check that the source is not a copy of another one.",
    "bent-scales": "Next: nothing; say Scores(gauge='linear') to take votes as they are.",
    "disconnected-comparisons": "Next: collect comparisons between the parts.",
    "never-compared": "Next: collect comparisons with these items, or leave them out.",
    "order-not-random": "Next: show items in random order, or every pair in both orders.",
    "position-bias": "Next: nothing; or show every pair in both orders.",
    "unparsable-replies": "Next: look at the replies if they are many.",
    "repeated-runs": "",
    "judges-not-identified": "Next: collect more comparisons before you trust the qualities.",
    "disagrees-with-plain-vote": "Next: compare with predict_baseline(votes), and pass gold= with a known ranking.",
    "copied-source": "Next: if one copies the other, pass dependencies= with the pair.",
    "items-with-one-vote": "Next: nothing, or collect more votes.",
    "items-without-votes": "Next: collect votes on them, or predict(votes, fill='prior') where labels are finite.",
    "unused-labels": "Next: nothing, or leave these labels out of the space.",
    "not-converged": "Next: use the labels, and trust the standard errors less.",
    "polished-on-sample": "",
}
