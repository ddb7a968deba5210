"""The cases of all mechanisms, made once: several files choose their tests by them, and some cases take long to make."""

from gcon_lab.audits.cases.registry import MECHANISMS

CASES = [case for maker in MECHANISMS.values() for case in maker()]
