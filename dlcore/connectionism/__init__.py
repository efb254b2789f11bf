"""Units and memories: what the chapter *Connectionism* builds."""
