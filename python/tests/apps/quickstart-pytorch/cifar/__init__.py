"""CIFAR-10 by a small convolutional net: an app for Flower that does not know fedstay."""
