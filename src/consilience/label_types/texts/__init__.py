"""Texts: translations, transcripts, summaries, captions."""
