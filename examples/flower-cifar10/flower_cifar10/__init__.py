"""CIFAR-10 on Flower, with agents that may leave."""
