"""The claims of the paper, and where the numbers that judge them stand in the tables of results."""

from __future__ import annotations

from .claim_types import BetterAbove, BetterBelow, Claim, Figure, Holds, Versus

EVERY_TARGET = "."
FILMS = "It reads the films in `movies`."
SCALES = "Scales U(1.5, 5.5)"
SAMPLES = ("regression_synthetic", "8 equal sources")
TOLD = "ours, mean and variance of the ratings told"
TEXT_LAW, STORED_LAW = "Weights 1/3 U(.2, 1)", "Weights all U(0, 1)"

CLAIMS = (
    Claim(
        "Rankings of films: end models by number of sources",
        "Figure 2, left",
        "Twelve simulated sources are enough to beat a model trained on 20% of the gold. More sources help. Snorkel, "
        "with permutations as classes, is worse.",
        ("movies_rankings", "snorkel_rankings"),
        (
            Figure("weights U(0, 1), 18 sources: network of the code, ours, ties counted", "", "stored .2491",
                   ("movies_rankings", STORED_LAW, "18", "ties counted: ours, code's network")),
            Figure("weights of the text, 18 sources: labels, ours", "", ".2252",
                   ("movies_rankings", TEXT_LAW, "18", "labels: ours")),
            Figure("weights of the text, 18 sources: labels, oracle", "", ".1211",
                   ("movies_rankings", TEXT_LAW, "18", "labels: oracle")),
            Figure("weights of the text, 18 sources: model, ours", "", "",
                   ("movies_rankings", TEXT_LAW, "18", "model: ours")),
            Figure("weights of the text, 18 sources: model, majority", "", "",
                   ("movies_rankings", TEXT_LAW, "18", "model: majority")),
            *(Figure(f"one draw, {m} sources: network of the code, {name}", stored if name == "Snorkel" else "", "",
                     ("snorkel_rankings", "Errors", f"films, {m} sources", f"model: {name}"))
              for m, stored in ((3, "stored .2740"), (9, "stored .2561"), (18, "stored .2527"))
              for name in ("ours", "Snorkel")),
        ),
        (BetterBelow("weights of the text, 18 sources: labels, ours", 0.2252),),
        "^(?!network of the text.*stored curve|board games)",
        "With nine or more sources, our labels are as good as the oracle's, except in one of five draws of 18 "
        "sources under the law of the code: there, six nearly perfect sources among twelve useless ones are mistaken "
        "for copies of each other. Of three sources, only one is informative, and the votes do not show which. The "
        "network limits the end model whatever the labels are: trained on all of the gold, the four-layer network of "
        "the text has an error of .26, the three-layer network of the code, which made the stored results, .24, and "
        "boosted trees .18. Snorkel was run on one draw each of 3, 9 and 18 sources. It is worse than ours every "
        "time, and worse than the plain vote.",
        differs="In the text, a third of the weights are U(.2, 1). In the code they are U(2, 5), and in the version "
        "whose results are stored, all weights are U(0, 1). The network has four layers in the text and three in the "
        "code.",
        needs=FILMS,
        why="with nine or more sources, labels match the oracle's except in one draw, and Snorkel is worse; of three "
        "sources only one is informative, and the network of the text limits the end model",
    ),
    Claim(
        "Films with real sources: rankings and regression",
        "Table 2",
        "Ratings of three sites do as well as the gold. Poor sources beside them hurt majority vote more than the "
        "label model. In regression, the label model is close to half of the gold and better than majority vote.",
        ("movies_rankings_real", "movies_regression"),
        (
            Figure("rankings: labels, 3 ratings + 3 poor, majority", "", ".1580",
                   ("movies_rankings_real", "", "3 + 3, majority", "labels, ties counted")),
            Figure("rankings: labels, the same, ours", "", ".1529",
                   ("movies_rankings_real", "", "3 + 3, ours", "labels, ties counted")),
            Figure("rankings: labels, the same, 30 sets known", "", "",
                   ("movies_rankings_real", "", "3 + 3, ours, 30 sets known", "labels, ties counted")),
            Figure("regression: mean of three scores", ".2754", ".3146",
                   ("movies_regression", "Real sources", "mean of the three", "end model")),
            Figure("regression: ours", ".2451", ".2572", ("movies_regression", "Real sources", TOLD, "end model")),
            Figure("regression: labels, mean of three scores, each centered", "", "",
                   ("movies_regression", "Real sources", "mean, each centered on the true mean", "labels")),
            Figure("regression: labels, ours", "", "", ("movies_regression", "Real sources", TOLD, "labels")),
            Figure("regression: half of the gold", ".2399", "",
                   ("movies_regression", "Real sources", "supervised, 50%", "end model")),
            Figure("regression: all of the gold", ".2106", ".2335",
                   ("movies_regression", "Real sources", "supervised, 100%", "end model")),
        ),
        (
            Holds("regression: ours", "regression: mean of three scores"),
            Holds("regression: ours", "regression: half of the gold"),
            BetterBelow("regression: ours", 0.2572),
        ),
        "^(?!simulated)",
        "Rankings: the three ratings agree with each other, and so do popularity, revenue and number of votes. The "
        "votes do not show which of the two groups follows the truth. The model reports this (`competing-groups`), "
        "and its labels are worse than the plain vote. 30 known sets tell the groups apart. Regression: our numbers "
        "are means over five splits; the paper has one split, which is easier. Our labels are better than the "
        "centered mean but train a model that is hardly better, because the sites share the remaining error and the "
        "features predict it.",
        needs=FILMS,
        why="good and poor sources form two groups, and the votes do not show which one follows the truth",
    ),
    Claim(
        "Synthetic regression: parameters and labels",
        "Figures 3 and 8",
        "The error of the parameters falls with the number of items. The estimated labels are consistent, and the "
        "mean of the votes is not.",
        ("regression_synthetic",),
        (
            Figure("8 sources, 100 items: error of slopes", "", "", (*SAMPLES, "100", "slope error")),
            Figure("8 sources, 100,000 items: error of slopes", "", "", (*SAMPLES, "100,000", "slope error")),
            Figure("8 sources, 100 items, ours", "~.104", ".1178", (*SAMPLES, "100", "ours")),
            Figure("8 sources, 100,000 items, mean", ".3762", ".3762", (*SAMPLES, "100,000", "mean")),
            Figure("8 sources, 100,000 items, ours", "~.0675", ".0672", (*SAMPLES, "100,000", "ours")),
            Figure("64 sources, 10,000 items, ours", "~.011", ".0114",
                   ("regression_synthetic", "10,000 items, by the number of equal", "64", "ours")),
        ),
        (
            Holds("8 sources, 100,000 items: error of slopes", "8 sources, 100 items: error of slopes"),
            Holds("8 sources, 100,000 items, ours", "8 sources, 100,000 items, mean"),
            BetterBelow("8 sources, 100 items, ours", 0.1178),
            BetterBelow("64 sources, 10,000 items, ours", 0.0114),
        ),
        "reference to its own|rescaled mean",
        "Our labels are as good as the oracle's. In the paper, all sources are equally good, so the mean is wrong "
        "only in its scale. Our table also has unequal sources.",
        why="as good as the oracle; the mean is wrong in its scale",
    ),
    Claim(
        "Regression on films: end models by number of sources",
        "Figure 9, left",
        "With more sources, the end model approaches one trained on all of the gold.",
        ("movies_regression",),
        (
            Figure("19 sources, mean", "", "", ("movies_regression", "Simulated sources", "19", "model: mean")),
            Figure("19 sources, ours", ".1915", "", ("movies_regression", "Simulated sources", "19", "model: ours")),
            Figure("3 sources, ours", ".2193", "", ("movies_regression", "Simulated sources", "3", "model: ours")),
        ),
        (Holds("19 sources, ours", "3 sources, ours"),),
        "^simulated",
        "Our labels are as good as the oracle's at every number of sources, and more sources help. The votes are a "
        "single draw on a single split, so the curves are uneven by about .01, the reference's as well as ours.",
        needs=FILMS,
        why="more sources help; on the one draw and split that were run, the error is up to .01 above the "
        "reference's",
    ),
    Claim(
        "Geodesic regression in hyperbolic space",
        "Figure 4",
        "A geodesic fitted to weak labels is better than one fitted to noisy known labels, and the label model is "
        "consistently better than the Fréchet mean.",
        ("geodesic_regression",),
        (
            *(
                Figure(f"{m} sources, {name}", f"loss {printed}", again, ("geodesic_regression", SCALES, m, column))
                for m, name, printed, again, column in (
                    ("3", "Fréchet mean", "76.259", "1.412", "clean, unweighted mean"),
                    ("3", "ours", "75.979", ".385", "clean, ours"),
                    ("9", "Fréchet mean", "75.761", ".182", "clean, unweighted mean"),
                    ("9", "ours", "75.654", ".122", "clean, ours"),
                )
            ),
            Figure("100 known labels", "loss 76.566", ".750",
                   ("geodesic_regression", SCALES, "100 known labels", "clean")),
            *(Figure(f"curvature -50, 6 sources, d = 5: {name}", "", "",
                     ("geodesic_regression", "Six sources", row, "d=5, variances, curvature -50"))
              for name, row in (("Fréchet mean", "unweighted mean"), ("ours", "wrapped likelihood (ours)"),
                                ("100 known labels", "known labels with noise 1"))),
        ),
        (
            Holds("3 sources, ours", "3 sources, Fréchet mean"),
            Holds("9 sources, ours", "9 sources, Fréchet mean"),
            Holds("3 sources, ours", "100 known labels"),
            BetterBelow("3 sources, ours", 0.385),
            BetterBelow("9 sources, ours", 0.122),
        ),
        "below (the unweighted mean|supervised)",
        "Our error is below that of the mean and of 100 known labels at every number of sources from 3 to 21, in both "
        "settings. At curvature -50, ours and the mean are level to the digits shown, far below 100 known labels. "
        "*Measured here* and *reference, run again* are squared distances to the true curve. The paper reports the "
        "loss to noisy labels; about 80 of that is noise, which no curve can remove.",
        "In the text, the noise has variances U(1.5, 4.5); in the code, it has standard deviations U(1.5, 5.5). We "
        "run both. The curvature is -50 in the text and -1/50 in the code. The main runs use -1/50. At -50, "
        "distances are measured in units of the curvature radius: in the units of the text, the votes lie beyond the "
        "range of double precision.",
        why="the curve is nearer to the truth everywhere; measured against noisy labels, it is level with the mean "
        "at 21 sources",
    ),
    Claim(
        "Generic metric spaces",
        "Figure 5",
        "If sources differ, the label model finds the right node more often than majority vote. If they are alike, "
        "the two are similar.",
        ("metric_spaces_paper", "finite_spaces"),
        (
            Figure("mixed sources, mean weight 0.7, majority", "~.30", ".297",
                   ("metric_spaces_paper", "Heterogeneous", "0.7", "majority")),
            Figure("mixed sources, mean weight 0.7, ours", "~.31", ".318",
                   ("metric_spaces_paper", "Heterogeneous", "0.7", "ours")),
            Figure("mixed sources, mean weight 0.7, oracle", "", ".661",
                   ("metric_spaces_paper", "Heterogeneous", "0.7", "oracle")),
            Figure("mixed sources, mean weight 1.2, ours", "~.56", ".585",
                   ("metric_spaces_paper", "Heterogeneous", "1.2", "ours")),
            Figure("alike sources, weight 1, majority", "~.49", ".471",
                   ("metric_spaces_paper", "Homogeneous", "1", "majority")),
            Figure("alike sources, weight 1, ours", "~.48", ".478",
                   ("metric_spaces_paper", "Homogeneous", "1", "ours")),
        ),
        (
            Holds("mixed sources, mean weight 0.7, ours", "mixed sources, mean weight 0.7, majority", below=False),
            BetterAbove("mixed sources, mean weight 0.7, ours", 0.318),
            BetterAbove("mixed sources, mean weight 1.2, ours", 0.585),
            BetterAbove("alike sources, weight 1, ours", 0.478),
        ),
        "at least|not below majority|^Coordinates",
        "The reference implementation sums squared distances although its votes follow plain distances, and leaves "
        "out the normalizing constant Z(y). With both corrected, ours is as good as knowing the weights except at "
        "the two ends. At mean weight .05, half of the weights are zero and the others .1, and a thousand items do "
        "not show which. At mean weight 4.2, five sources never err, and in some draws they are mistaken for copies. "
        "In these two settings majority vote is better by .002 and .003. Everywhere else it is worse or level, even "
        "where all sources are alike.",
        why="far above the reference; majority vote is better by .002 to .003 where votes are nearly random and where "
        "some sources never err",
    ),
    Claim(
        "Semantic dependency parsing",
        "Table 3",
        "The consensus of three parsers is better than each of them on three of four treebanks.",
        ("parsers", "parsers_czech"),
        tuple(
            figure
            for file, name, best, best_paper, paper in (
                ("parsers", "EWT", "udpipe-lines", ".792", ".795"),
                ("parsers", "LinES", "udpipe-ewt", ".847", ".850"),
                ("parsers", "ParTUT", "spacy-ewt", ".869", ".866"),
                ("parsers_czech", "PUD", "udpipe-fictree", "PDT .861", "PDT .873"),
            )
            for figure in (
                Figure(f"{name}, best parser", best_paper, "no code", (file, "", f"{name}: {best}", "UAS")),
                Figure(f"{name}, equal weights", "", "no code", (file, "", f"{name}: equal weights", "UAS")),
                Figure(f"{name}, ours", paper, "no code", (file, "", f"{name}: unsupervised", "UAS")),
            )
        ),
        (
            *(Holds(f"{name}, ours", f"{name}, {other}", below=False)
              for name in ("EWT", "LinES", "ParTUT", "PUD") for other in ("best parser", "equal weights")),
        ),
        "best single parser|equal weights",
        "The consensus is better than the best parser, and than equal weights, on all four test sets. We use no known "
        "tree; the paper did. We use other parsers (UDPipe and spaCy, trained on the other treebanks), so only "
        "differences can be compared. The Czech treebank PDT is not available here; PUD takes its place. The remaining "
        "Czech treebanks are small (legal texts of CLTT and a part of FicTree), so two of the four parsers get 40% to "
        "50% of the heads wrong. Training the spaCy parsers again changes their scores by up to a point.",
        why="better than every parser and than equal weights on all four test sets",
    ),
    Claim(
        "Synthetic full rankings",
        "Figure 6",
        "The Kemeny rule weighted by estimated accuracies is better than the unweighted rule and nearly optimal.",
        ("rankings_paper",),
        (
            *(
                Figure(f"{items} items, {m} sources, ours", paper, reference,
                       ("rankings_paper", "Ten and twenty", f"{items} items, m={m}", "ours"))
                for items, m, paper, reference in (
                    (10, 2, ".0046", ".0051"), (10, 6, ".0013", ".0018"), (10, 18, ".0000", ".0000"),
                    (20, 2, "", ".0027"), (20, 6, "", ".0012"), (20, 18, "", ".0000"),
                )
            ),
            *(Figure(f"10 items, {m} sources, unweighted", paper, reference,
                     ("rankings_paper", "Ten and twenty", f"10 items, m={m}", "majority"))
              for m, paper, reference in ((6, ".0068", ".0072"), (12, ".0010", ""), (18, ".0004", ""))),
            *(Figure(f"10 items, {m} sources, ours, labels of the model", "", "",
                     ("rankings_paper", "Ten and twenty", f"10 items, m={m}", "ours, m only")) for m in (6, 12, 18)),
            Figure("10 items, 6 sources, oracle", ".0013", ".0018",
                   ("rankings_paper", "Ten and twenty", "10 items, m=6", "oracle")),
            Figure("text, 5 items, 18 sources, ours", "", ".2252",
                   ("rankings_paper", "Five items", "1/3 U(.2, 1), m=18", "ours")),
            Figure("text, 5 items, 18 sources, oracle", "", ".1211",
                   ("rankings_paper", "Five items", "1/3 U(.2, 1), m=18", "oracle")),
        ),
        (
            Holds("10 items, 6 sources, ours", "10 items, 6 sources, unweighted"),
            *(Holds(f"10 items, {m} sources, ours, labels of the model", f"10 items, {m} sources, unweighted")
              for m in (6, 12, 18)),
            BetterBelow("10 items, 2 sources, ours", 0.0051),
            BetterBelow("20 items, 6 sources, ours", 0.0012),
            BetterBelow("text, 5 items, 18 sources, ours", 0.2252),
        ),
        "m >= 9|m = 6",
        "Where only the weights matter, the learned ones are as good as the true ones. The reference is close to "
        "that with ten and twenty items, where good sources are often exactly right, and far from it with five items "
        "and weaker sources. With two sources the reference is slightly better. A model fitted to only the 12 or 18 "
        "sources that vote is as good, although eight of the 18 are nearly perfect and could be mistaken for copies "
        "of each other.",
        "The code always learns the weights from all 18 sources, whatever m is. In the table, *m only* learns them "
        "from the m sources that vote.",
        why="as good as the true weights from nine sources on",
    ),
    Claim(
        "Synthetic partial rankings",
        "Figure 7",
        "When items are hidden from sources, weighting helps as much as with full rankings.",
        ("rankings_paper", "rankings_partial"),
        tuple(
            figure
            for share, plotted, better in (
                ("0.9", ".0105", ".0000"), ("0.7", ".0170", ".0071"),
                ("0.5", ".0715", ".0679"), ("0.2", ".1904", ".2010"),
            )
            for figure in (
                Figure(f"code, p={share}, 18 sources, majority", "", "",
                       ("rankings_paper", "Masked", f"p={share}, m=18", "majority")),
                Figure(f"code, p={share}, 18 sources, ours", "", f"{plotted}, other rule {better}",
                       ("rankings_paper", "Masked", f"p={share}, m=18", "ours, m only")),
                Figure(f"code, p={share}, 18 sources, weights of ours alone", "", "",
                       ("rankings_paper", "Masked", f"p={share}, m=18", "ours")),
            )
        )
        + tuple(
            Figure(f"text, p={share}, 18 sources, ours", "", "",
                   ("rankings_partial", "Partial rankings", "auto, bayes", f"p={share}"))
            for share in ("0.9", "0.7", "0.5", "0.2")
        ),
        (
            *(Holds(f"code, p={share}, 18 sources, ours", f"code, p={share}, 18 sources, majority")
              for share in ("0.9", "0.7", "0.5", "0.2")),
            *(BetterBelow(f"code, p={share}, 18 sources, ours", value)
              for share, value in (("0.7", 0.0071), ("0.5", 0.0679), ("0.2", 0.1904))),
        ),
        "^p=",
        "Our weights stay informative where those of the reference do not, and our labels come close to the "
        "oracle's. Eight excellent sources among ten poor ones look like copies of each other; the difference is "
        "that the poor sources agree more with them than with each other. With many hidden items, single draws still "
        "go wrong.",
        "In the text, sources rank the items they are shown. The code draws a full ranking and hides items of it. We "
        "run both.",
        why="weights stay informative where those of the reference do not, and labels come close to the oracle's",
    ),
    Claim(
        "Board games",
        "Figures 2 and 9, right; Tables 5 and 6",
        "Models trained on simulated sources improve with the number of sources, and twelve beat 20% of the gold. "
        "Heuristics as sources come close to 5 to 10% of the gold in rankings. In regression they are comparable to "
        "training on a bad subset.",
        ("board_games", "snorkel_rankings"),
        (
            *(Figure(f"rankings, {m} sources, ours", f"stored {stored}", "",
                     ("board_games", "Rankings", f"{m} simulated, ours", "end model"))
              for m, stored in ((3, ".1680"), (9, ".1595"), (12, ".1598"), (18, ".1578"))),
            *(Figure(f"rankings: {name}", paper, "", ("board_games", "Rankings", name, "end model"))
              for name, paper in (("supervised, 5%", ".1921"), ("supervised, 10%", ".1829"),
                                  ("supervised, 20%", "stored .1720"), ("heuristics, majority", ""),
                                  ("heuristics, ours", ".1915"))),
            *(Figure(f"ratings, {m} sources, ours", paper, "",
                     ("board_games", "Ratings", f"{m} simulated, ours", "end model"))
              for m, paper in ((3, ".3005"), (18, ".2828"))),
            *(Figure(f"ratings: {name}", paper, "", ("board_games", "Ratings", name, "end model"))
              for name, paper in (("supervised, 1%", ".4605"), ("bad subset, 10%", ".8043"),
                                  ("bad subset, 25%", ".4628"), ("heuristics, mean", ""),
                                  ("heuristics, ours", ".8824"))),
            *(Figure(f"rankings, one draw, {m} sources, {name}", stored if name == "Snorkel" else "", "",
                     ("snorkel_rankings", "Errors", f"board games, {m} sources", f"model: {name}"))
              for m, stored in ((3, "stored .1774"), (9, "stored .1615")) for name in ("ours", "Snorkel")),
        ),
        (BetterBelow("ratings: heuristics, ours", 0.8824),),
        targets="^(rankings|ratings|board games)",
        reason="Our table is of 2015 and has 11,262 ranked games; the paper's is of 2021 and has about 19,200. "
        "Levels therefore differ, and only the order of the rows can be compared. Snorkel was run on one draw each. "
        "It is worse than ours with nine sources and better with three, of which only one is informative, so the "
        "votes do not show which.",
        needs="It reads `bgg`, or the BoardGameGeek table of the paper.",
        why="heuristics and ratings as claimed; with three simulated rankings, the plain vote and Snorkel are "
        "better, and twelve do not beat 20% of the gold",
    ),
    Claim(
        "Learning to rank with retrieval features as sources",
        "Table 7",
        "Without labels, the model is better than BM25 alone and than 10% of the gold, in Kendall's tau and NDCG@1.",
        ("letor",),
        tuple(
            Figure(f"{name}: {measure}", paper, "", ("letor", "One document", f"{name}, network", measure))
            for name, values in (
                ("supervised, 10%", (".4003", ".7000")), ("BM25", (".4001", ".7288")), ("ours", (".3929", ".7402")),
            )
            for measure, paper in zip(("Kendall", "NDCG@1"), values, strict=True)
        )
        + tuple(
            Figure(f"labels, Kendall: {name}", "", "", ("letor", "One document", f"{row}, network", "labels, Kendall"))
            for name, row in (("plain vote", "majority"), ("ours", "ours"))
        ),
        (Holds("labels, Kendall: ours", "labels, Kendall: plain vote"),),
        targets="one of each level, (network|labels)",
        reason="We use the paper's sets and network on other queries and documents. The plain vote of all ten features "
        "is better than ours, because the errors of the features are crossed: BM25 and two language models order "
        "nearly all pairs alike. Counted with the gold, their errors correlate by .2 with those of the features "
        "of the same text (Dirichlet model, tf-idf, tf) and by .2 with those of title and anchor, while the "
        "errors of these two groups are hardly correlated (.02). In our model, a source belongs to one group, so "
        "the features that share errors with all others look best: BM25 is estimated to put 6% of the pairs in "
        "the wrong order, and it is 30%. The plain vote counts the first group as four votes of ten. The votes "
        "alone do not contradict our estimate. The finding `competing-groups` warns of it, and known sets help.",
        needs="It reads `letor_mq2008`, which stands in for MSLR-WEB10K.",
        why="better than BM25 and a tenth of the gold, but the plain vote of all ten sources is better still",
    ),
    Claim(
        "Theory: rates of consistency",
        "Theorem 1, Corollary 1, Theorem 2",
        "The error of quadratic triplets is O(n^-1/4), that of continuous triplets O(n^-1/2).",
        ("theory_rates",),
        (
            Figure("quadratic triplets, three informative sources: slope", "at most -1/4", "no code",
                   ("theory_rates", "Rates", "three informative sources: quadratic triplets", "slope")),
            Figure("continuous triplets, three informative sources: slope", "-1/2", "",
                   ("theory_rates", "Rates", "three informative sources: continuous triplets", "slope")),
            Figure("quadratic triplets, a source says nothing: slope", "-1/4", "no code",
                   ("theory_rates", "Rates", "a fourth source says nothing: quadratic triplets", "slope")),
            Figure("quadratic triplets, a signal of n^-1/4: slope", "-1/4", "no code",
                   ("theory_rates", "Rates", "the third source has signal n^-1/4: quadratic triplets", "slope")),
        ),
        (BetterBelow("quadratic triplets, three informative sources: slope", -0.4),),
        EVERY_TARGET,
        "The bound is not tight: with fixed parameters, the error of quadratic triplets falls as n^-1/2, too, even "
        "where the discriminant is zero. The rate n^-1/4 appears if the signal of a source shrinks as n^-1/4.",
        why="both errors fall as n^-1/2; n^-1/4 appears only where the signal of a source shrinks as n^-1/4",
    ),
    Claim(
        "Theory: what the errors depend on",
        "Theorem 1, Theorem 2",
        "The error of quadratic triplets grows with the dimension as (log d)^1/4. That of continuous triplets grows "
        "at most as a_min^-10 with the weakest source, and at most as e_max^3 with the second moment.",
        ("theory_constants",),
        targets=EVERY_TARGET,
        reason="The bounds hold and are far from tight: the measured growth is about the root of log d, a_min^-0.4 "
        "and e_max^1.1. The growth with log d is steeper than the fourth root, but the error stays below the bound "
        "at every dimension, because the bound decreases only as n^-1/4.",
        why="below the bound at every dimension, but the growth with log d is steeper than its fourth root",
    ),
    Claim(
        "Theory: weights of rankings, and how many sources are enough",
        "Corollary 1, its lemma, and the remark on Theta(log(m / eps)) sources",
        "Quadratic triplets on the pairs of items recover theta with an error of n^-1/4, g_k has the properties of "
        "the lemma, and the number of sources needed to find a ranking grows with the logarithm of items over "
        "failures.",
        ("theory_rankings",),
        targets=EVERY_TARGET,
        reason="The error of the weights falls as n^-1/2 instead of n^-1/4, both below and above the limit 4 ln 2 of "
        "the corollary.",
        why="the error of the weights falls as n^-1/2, and the number of sources grows with the logarithm",
    ),
    Claim(
        "Theory: correlation potentials",
        "Equation 1, Algorithm 1",
        "Beside theta_a, the potentials theta_ab of dependent sources are learned.",
        ("theory_potentials",),
        targets=EVERY_TARGET,
        reason="For classes with 8,000 items, potentials that are not zero are recovered to within .01, whether the "
        "pair is given or found. A given pair is assumed to share something: if it does not, its potential is "
        "estimated at .1 with 8,000 items and at .15 with 1,000. For other label types, `correlation_potential` is "
        "that of the two-class model with the same error correlation. It grows with theta_ab but is on a scale of "
        "its own.",
        why="potentials are recovered to within .01; a pair that is given without reason is estimated at .1",
    ),
    Claim(
        "Theory: the isotropic shortcut",
        "Appendix D, used for rankings",
        "Mean distances to the truth can be computed from mean distances between sources, as if distances were "
        "squared.",
        ("theory_isotropic",),
        (
            Figure("isotropic, error of the weights, n=250", "falls with n", "no fall with n",
                   ("theory_isotropic", "Error of the weights", "isotropic (the paper)", "n=250")),
            Figure("isotropic, error of the weights, n=64,000", "falls with n", "no fall with n",
                   ("theory_isotropic", "Error of the weights", "isotropic (the paper)", "n=64,000")),
            Figure("ours, error of the weights, n=250", "", "",
                   ("theory_isotropic", "Error of the weights", "default (ours)", "n=250")),
            Figure("ours, error of the weights, n=16,000", "", "",
                   ("theory_isotropic", "Error of the weights", "default (ours)", "n=16,000")),
        ),
        targets=EVERY_TARGET,
        against=True,
        reason="For rankings, the shortcut is inconsistent: its error is as large with 64,000 items as with 250, "
        "because two sources that are wrong about the same pair of items agree on it. Our error falls as n^-1/2.",
        why="inconsistent for rankings; correct for squared distances",
    ),
    Claim(
        "Theory: distortion of an embedding",
        "Theorem 3",
        "If an embedding shortens distances by a share of at most eps, the weights are off by at most eps |mu| / "
        "e_min.",
        ("theory_distortion",),
        (
            Figure("mixed sources, eps .1, backward map: error", "", "",
                   ("theory_distortion", "Distortion", "mixed: all distances alike, 10%", "backward map: error")),
            Figure("strong sources, eps .1, backward map: error", "", "",
                   ("theory_distortion", "Distortion", "strong: all distances alike, 10%", "backward map: error")),
            Figure("strong sources, eps .1, model: error", "", "",
                   ("theory_distortion", "Distortion", "strong: all distances alike, 10%", "model: error")),
        ),
        targets="error below the bound",
        reason="The theorem holds as it is proved: for means of embedded distances that are converted into weights "
        "by the law of the true distances. As it is stated, for weights of a model of the embedded distances, it "
        "fails for strong sources, because it compares two different exponential families as if they were one.",
        why="true as proved, false as stated",
    ),
)  # fmt: skip

#: What the paper does not have: topic, files, what is measured, and which of their targets are about it.
BEYOND = (
    ("LLM judges", ("scores_real", "real_data"), "11 judges of text simplifications, each on its own scale", "judges"),
    ("crowd rankings", ("rankings_real", "dependence_real", "real_data"),
     "four pictures ranked by their number of dots", "dots"),
    ("crowd emotions", ("scores_real", "real_data", "vectors"), "38 workers rate seven emotions in headlines",
     "workers|crowd_affect"),
    ("translations", ("dependence_real", "real_data"), "crowd translations under an edit distance", "translations"),
    ("films", ("rankings_real", "scores_real", "dependence_real", "real_data"),
     "ratings of three sites beside poor sources", "films|movies"),
    ("labeling functions", ("classes_real", "real_data"), "five data sets of WRENCH",
     "youtube|sms|trec|semeval|hausa|plain vote|majority|range"),
    ("dependent sources", ("dependent_classes", "dependent_rankings", "dependent_scores"),
     "copies are found, named and counted once", "."),
    ("simulated sources",
     ("classes_synthetic", "rankings", "kemeny_exactness", "tags", "trees", "manifolds", "vectors", "scores"),
     "labels are nearly as good as if the sources were known", "."),
    ("preferences", ("preferences",), "pairwise judgments by people and language models", "."),
    ("boxes and spans", ("boxes_spans",), "sets of boxes in images and of spans in texts", "."),
    ("texts", ("texts",), "translations by crowd workers, chosen or rewritten", "."),
    ("end models", ("end_models_real",), "whether soft labels and confidence help on real data", "."),
    ("trust",
     ("fresh_seeds", "never_worse", "calibration", "calibration_real", "known_labels", "audit_coverage"),
     "losses to the plain vote, and whether confidence is right", "."),
)  # fmt: skip

#: Every table that has the plain vote, by whatever name, beside our default.
AGAINST_PLAIN = (
    Versus("classes_real", "Classes", "auto", "method=\"majority\"", above=True),
    Versus("classes_synthetic", "Classes", "auto", "majority", above=True),
    Versus("dependent_classes", "n =", "default", "plain", above=True),
    Versus("real_data", "Real data", "default", "plain vote"),
    Versus("fresh_seeds", "", "gap", "gap of the plain vote"),
    Versus("finite_spaces", "Finite", "ours", "majority", above=True),
    Versus("finite_spaces", "Distance", "ours, bayes", "majority"),
    Versus("metric_spaces_paper", "H", "ours", "majority", above=True),
    Versus("metric_spaces_paper", "Coordinates", "coordinates", "plain vote", above=True, settings="mean"),
    Versus("rankings", "Rankings", "auto, bayes", "majority, bayes"),
    Versus("rankings_paper", "Ten and twenty", "ours, m only", "majority"),
    Versus("rankings_paper", "Five items", "ours", "majority"),
    Versus("rankings_paper", "Masked", "ours, m only", "majority"),
    Versus("rankings_partial", "Partial", "auto, bayes", "majority, bayes"),
    Versus("rankings_partial", "Top 3", "tied last", "tied last, majority", settings="Kendall"),
    Versus("rankings_real", "Dots", "auto", "majority", settings="Kendall"),
    Versus("rankings_real", "Movies", "auto", "majority", settings="good"),
    Versus("dependent_rankings", "Copies", "auto", "majority"),
    Versus("dependent_rankings", "Points", "auto: distance", "majority: distance"),
    Versus("dependence_real", "Films", "auto", "majority", settings="error"),
    Versus("dependence_real", "Labels", "learned", "equal"),
    Versus("movies_rankings", "Weights", "ours", "majority"),
    Versus("movies_rankings_real", "Films", "ours", "majority", settings="skipped"),
    Versus("movies_regression", "Simulated", "ours", "mean"),
    Versus("movies_regression", "Real", "ours, nothing told", "mean of the three", settings="labels|end model"),
    Versus("board_games", "Rankings", "ours", "majority", settings="labels|end model"),
    Versus("board_games", "Ratings", "ours", "mean", settings="labels|end model"),
    Versus("snorkel_rankings", "Errors", "ours", "majority"),
    Versus("letor", "", "ours", "majority", settings="^(labels, )?Kendall"),
    Versus("letor", "", "ours", "majority", above=True, settings="^NDCG"),
    Versus("preferences", "", "default", "equal", above=True),
    Versus("scores", "", "auto", "majority"),
    Versus("scores_real", "Films", "nothing told", "mean of the sources"),
    Versus("scores_real", "11 LLM", "auto", "mean of the judges", settings="MAE|MSE"),
    Versus("scores_real", "11 LLM", "auto", "mean of the judges", above=True, settings="tau|^r$"),
    Versus("scores_real", "38 crowd", "auto", "mean of the workers"),
    Versus("dependent_scores", "Two groups", "r of the default", "r of the mean", above=True),
    Versus("dependent_scores", "Sparse", "r", "r of the mean", above=True),
    Versus("regression_synthetic", "", "ours", "mean"),
    Versus("vectors", "Vectors", "auto", "majority"),
    Versus("vectors", "Vectors", "auto", "mean of the votes", settings="^R?MSE"),
    Versus("manifolds", "Points", "default, wrapped likelihood (ours)", "unweighted mean"),
    Versus("manifolds", "Points", "default (ours)", "unweighted mean"),
    Versus("geodesic_regression", "Six", "wrapped likelihood (ours)", "unweighted mean"),
    Versus("geodesic_regression", "", "ours", "unweighted mean"),
    Versus("tags", "One tag", "auto", "majority", above=True),
    Versus("tags", "Many tags", "pooled", "majority"),
    Versus("tags", "Sequences", "chain, least expected cost", "majority"),
    Versus("trees", "Dependency", "token EM, log-odds + log 2", "equal weights", above=True),
    Versus("parsers", "Dependency", "unsupervised", "equal weights", above=True),
    Versus("parsers_czech", "Dependency", "unsupervised", "equal weights", above=True),
    Versus("boxes_spans", "Boxes", "default", "best vote"),
    Versus("boxes_spans", "Crowd", "default", "best vote", settings="overlap"),
    Versus("texts", "Texts", "default", "best vote"),
)  # fmt: skip
