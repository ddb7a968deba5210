"""Guidance before any budget is spent: what public numbers tell for free, and what a small paid look adds."""

from gcon.choose.advice import Advice, Verdict, advise
from gcon.choose.expectations import Expectation
from gcon.choose.noise_levels import NoiseFacts, noise_facts
from gcon.choose.paid_look import Look, take_look
from gcon.choose.public_facts import PublicFacts, public_facts

__all__ = [
    "Advice",
    "Expectation",
    "Look",
    "NoiseFacts",
    "PublicFacts",
    "Verdict",
    "advise",
    "noise_facts",
    "public_facts",
    "take_look",
]
