"""Derivatives, our own engine and how it is trained: what the chapter *Optimization* builds."""
