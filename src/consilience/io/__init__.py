"""Reading votes: frames become columns, columns and nested lists become arrays of labels."""
