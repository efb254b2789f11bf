"""Hand out, grade and return assignments; ``python -m classroom --help`` tells how."""
