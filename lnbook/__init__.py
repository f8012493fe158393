"""The tested teaching code of the Layer Normalization course."""

__version__ = "0.1.0"
