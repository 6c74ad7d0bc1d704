"""Seven animals, three annotators: what every library writes, and what must come back from ours."""

CLASSES = ["cat", "cow", "dog"]
TEXTS = ["meows", "moos", "barks", "purrs", "grazes", "growls", "sleeps"]
ANNA, BEN, CARL = (f"00000000-0000-4000-8000-00000000000{i}" for i in (1, 2, 3))
NUMBERS = {ANNA: 1, BEN: 2, CARL: 3}  # where a tool has no names but numbers
VOTES = [
    {ANNA: "cat", BEN: "cat", CARL: "dog"},
    {ANNA: "cow", BEN: "cow"},
    {ANNA: "dog", CARL: "dog"},
    {BEN: "cat", CARL: "cat"},
    {ANNA: "cow", BEN: "dog", CARL: "cow"},
    {ANNA: "dog"},
    {BEN: "cat", CARL: "cow"},
]
SETS = [sorted(set(votes.values())) for votes in VOTES]
PREDICTED = ["cat", "cow", "dog", "cat", "cow", "dog", "cat"]
SCORES = [0.9, 0.8, 0.95, 0.7, 0.6, 0.99, 0.55]
CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="animal" toName="text" choice="multiple">'
    + "".join(f'<Choice value="{name}"/>' for name in CLASSES)
    + "</Choices></View>"
)
