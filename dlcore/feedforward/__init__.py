"""Networks in NumPy and what they learn: what the chapter *Feedforward networks* builds."""
