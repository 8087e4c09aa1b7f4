"""Proofs: cheap ways to prove that a write keeps a rule, so that no engine has to check it.

A proof is sound and incomplete: where it returns True, no engine finds an offender; where it
returns False, the rule may still hold, and an engine decides. An engine needs milliseconds to plan
and start a query, more than a small write may cost altogether, and most writes break no rule.
"""
