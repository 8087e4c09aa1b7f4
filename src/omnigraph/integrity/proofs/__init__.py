"""Proofs: cheap ways to show that a write keeps a rule, so that no engine has to look.

A proof is sound and incomplete: where it says True, no engine finds an offender; where it says
False, the rule may still hold, and an engine decides. An engine needs milliseconds to plan and
start a query, more than a small write may cost altogether, and most writes break nothing.
"""
