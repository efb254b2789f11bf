"""The implementations behind *Executable Deep Learning*, one module per concept.

Nothing is re-exported here: importing a NumPy module never loads PyTorch.
"""
