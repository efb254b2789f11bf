"""Pictures, with PyTorch: what the chapter *Convolutional networks* builds."""
