"""Judges measured on the gold set: replies whose claims people have labeled."""
