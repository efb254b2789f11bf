"""Attention, with PyTorch: what the chapter *Transformers* builds."""
