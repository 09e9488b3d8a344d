"""The joint model's parameters, fitted to image pairs with known flow."""
