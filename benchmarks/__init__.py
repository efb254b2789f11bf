"""How fast ``dlcore`` is beside PyTorch: ``python -m benchmarks`` prints the table."""
