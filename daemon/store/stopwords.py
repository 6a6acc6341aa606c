"""Words that a full-text query leaves out: they are in most texts and say nothing about which one is meant.

First-person pronouns are missing on purpose, since "my" and "I" show that a memory is about the person; so is "may",
which is also a month.
"""

_WORDS = """
a an the this that these those and or but if so as than then because while of at by for with about against between into
through during before after to from in out on off over under up down again am is are was were be been being do does did
doing done have has had having can could will would shall should might must what which who whom whose when where why how
it its they them their there here he him his she her you your not no any some all each both more most other such only
own same too very just also please tell remind know think want wanted let get got
"""

STOP_WORDS = frozenset(_WORDS.split())
