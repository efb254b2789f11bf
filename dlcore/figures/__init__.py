"""Figures that move, the plots of the book, and bars that say how far it is."""
