"""The rule engine: model, match, limits, delay, decide, explain.

Every dialect compiles into ``model``; ``decide`` is the only evaluator. Read ``model``, then ``decide``.
"""
