"""Words and sequences, with PyTorch: what the chapter *Recurrent networks* builds."""
