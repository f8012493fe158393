"""Puts known bugs into copies of lnbook, one at a time, and asks which chapter finds each."""
