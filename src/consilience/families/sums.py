"""Named arrays that add up; see `consilience.estimation.protocol.Statistics`."""

from consilience.estimation.protocol import Statistics as Sums

__all__ = ["Sums"]
