"""Thousands of private models a minute: what they share is computed once, and finished work is never done again."""
