"""Guidance before any budget is spent: what public numbers tell for free, and what a small paid look adds."""

from gcon.advise.expectations import Expectation
from gcon.advise.give import Advice, Verdict, advise
from gcon.advise.noise import NoiseFacts, noise_facts
from gcon.advise.paid_look import Look, take_look
from gcon.advise.public_facts import PublicFacts, public_facts

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
