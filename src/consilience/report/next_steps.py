"""What to do about a finding, by its code: the short form of the table in docs/methods.md."""

from __future__ import annotations

__all__ = ["NEXT_STEPS"]

NEXT_STEPS = {
    "method": "",
    "too-few-sources": "Next: add sources, remove a dependency, or pass gold= with a few known labels.",
    "weights-unsupported": "Next: nothing, or pass gold= with a few known labels.",
    "no-signal": "Next: check that a row means the same item for all sources; add better sources.",
    "never-votes": "Next: leave the source out, or check how its abstentions are coded.",
    "constant-source": "Next: leave it out; as a labeling function for one class it is fine.",
    "low-overlap": "Next: collect votes on common items, or pass gold=.",
    "adversarial-source": "Next: check how its labels are coded, or leave it out.",
    "dependent-pair": "Next: nothing; say dependencies='none' if they are independent.",
    "competing-groups": "Next: pass gold= with about ten known labels.",
    "poor-fit": "Next: check 30 items by hand and pass them as gold=.",
    "calibrated": "",
    "labeling-functions": "Next: pass gold= with 30 known labels.",
    "judges-not-compared": "Next: let several judges judge the same pairs.",
    "scale-not-identified": "Next: give mean= (and for Scores variance=) to the label type, or pass gold=.",
    "heavy-tails": "Next: look at the far votes; outliers were allowed for.",
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
    "not-converged": "Next: use the labels; more items would settle them.",
}
