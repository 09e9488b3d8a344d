"""Fit the joint model's parameters to image pairs with known flow."""
