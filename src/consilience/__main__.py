"""``python -m consilience`` is the same as the command ``consilience``."""

from consilience.cli import main

if __name__ == "__main__":
    main(prog_name="consilience")
