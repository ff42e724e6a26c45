"""Tuning: choose the next trial, and evaluate results. Other modules run the trials."""
