"""Injects known bugs into copies of lnbook, one at a time, to see which chapter catches each."""
