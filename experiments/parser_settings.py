"""The parsers of the experiments: settings of the two families that ``consilience.end_models`` trains."""

from __future__ import annotations

import sys

import consilience as cs

families = cs.end_models.parser_families
ParserFamily, Sentence, Tree = families.ParserFamily, families.Sentence, families.Tree
passes_over, root_of, single_root = families.passes_over, families.root_of, families.single_root


def say(message: str) -> None:
    """Tell how far we are, where it does not mix with results."""
    print(message, file=sys.stderr, flush=True)


#: The first two are trained unless others are asked for; the rest vary them, so they err together with them.
FAMILIES: dict[str, ParserFamily] = {
    "udpipe": families.UDPipe(),
    "spacy": families.Spacy(report=say),
    "udpipe-swap": families.UDPipe(transition_system="swap", transition_oracle="static_lazy"),
    "udpipe-link2": families.UDPipe(transition_system="link2", transition_oracle="static"),
    "spacy-upos": families.Spacy(tags=True, reads="words and gold UPOS", report=say),
}
