"""The proof: load on every platform while whatever can go wrong does, and a judge at the end.

`plan` draws from a seed what is said, and what befalls whom and when; `storm` carries it out
against a contestant, of which it knows no more than `contestant` says; `judge` holds what people
were shown against what they asked. `soak` is the same load with nothing going wrong.
"""
