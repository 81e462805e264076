"""The same bot four times, each written as the documentation of its library teaches.

They run in environments of their own, and share nothing with Answerback but the words of the storm:
`benchmarks.proof.errands`.
"""
