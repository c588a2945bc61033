"""Irises by logistic regression: an app for Flower that does not know fedstay."""
