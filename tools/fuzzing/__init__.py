"""Changed inputs of all formats, and what must hold of whatever comes in."""
