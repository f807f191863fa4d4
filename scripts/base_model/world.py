# SPDX-License-Identifier: GPL-3.0-or-later
"""The world that the base model learns: people, animals, things, places, and facts about them.

Data and the grammar helpers that every generator needs. Nothing here is random: a fact is the same in all documents.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    name: str
    he: str
    him: str
    his: str


PEOPLE = [Person(n, "she", "her", "her") for n in (
    "Anna Mia Lily Emma Rosa Clara Nina Ella Sara Julia Kate Lucy Alice Maria Eva Ruth").split()]
PEOPLE += [Person(n, "he", "him", "his") for n in (
    "Tom Ben Max Leo Paul Sam Jack Noah Peter Felix Oscar Henry David Adam Luke Simon").split()]


@dataclass(frozen=True)
class Animal:
    name: str
    size: int  # a rank: a larger number is a bigger animal
    sound: str = ""
    baby: str = ""
    home: str = ""
    food: str = ""
    moves: str = "walk"  # walk, fly or swim
    legs: int = 4
    pet: bool = False


ANIMALS = [
    Animal("ant", 1, home="in the ground", food="crumbs", legs=6),
    Animal("bee", 2, "buzz", home="in a hive", food="honey", moves="fly", legs=6),
    Animal("spider", 3, home="in a web", food="flies", legs=8),
    Animal("mouse", 5, "squeak", home="in a hole", food="cheese", pet=True),
    Animal("frog", 6, "croak", "tadpole", "in a pond", "flies", "swim"),
    Animal("bird", 7, "sing", "chick", "in a nest", "seeds", "fly", 2, True),
    Animal("crow", 9, "caw", home="in a tree", food="worms", moves="fly", legs=2),
    Animal("owl", 10, "hoot", home="in a tree", food="mice", moves="fly", legs=2),
    Animal("rabbit", 11, home="in a burrow", food="carrots", pet=True),
    Animal("hen", 12, "cluck", "chick", "in a coop", "corn", "walk", 2),
    Animal("duck", 13, "quack", "duckling", "on a pond", "bread", "swim", 2),
    Animal("cat", 14, "meow", "kitten", "in a house", "fish", pet=True),
    Animal("goose", 15, "honk", "gosling", "on a farm", "grass", "swim", 2),
    Animal("fox", 16, home="in a den", food="hens"),
    Animal("dog", 18, "bark", "puppy", "in a kennel", "meat", pet=True),
    Animal("goat", 20, "bleat", "kid", "on a farm", "leaves"),
    Animal("sheep", 21, "baa", "lamb", "in a field", "grass"),
    Animal("wolf", 22, "howl", "cub", "in a forest", "meat"),
    Animal("pig", 23, "oink", "piglet", "in a sty", "potatoes"),
    Animal("lion", 27, "roar", "cub", "in Africa", "meat"),
    Animal("donkey", 28, home="in a stable", food="hay"),
    Animal("cow", 32, "moo", "calf", "in a barn", "grass"),
    Animal("horse", 33, "neigh", "foal", "in a stable", "hay"),
    Animal("bear", 34, "growl", "cub", "in a cave", "honey"),
    Animal("elephant", 40, "trumpet", "calf", "in Africa", "leaves"),
    Animal("whale", 45, home="in the sea", food="fish", moves="swim", legs=0),
]
ANIMAL = {a.name: a for a in ANIMALS}

# Things that people can carry, with a size rank on the same scale as the animals.
THINGS = {
    "coin": 2, "button": 2, "ring": 2, "key": 3, "feather": 3, "shell": 4, "pen": 4, "pencil": 4, "spoon": 5,
    "stone": 5, "letter": 5, "brush": 6, "cup": 7, "candle": 7, "bell": 7, "whistle": 3, "map": 8, "ball": 9,
    "plate": 9, "book": 9, "doll": 10, "hat": 10, "flute": 9, "mirror": 10, "clock": 11, "lamp": 13, "kettle": 12,
    "drum": 14, "kite": 15, "scarf": 11, "coat": 17, "blanket": 18, "umbrella": 17, "basket": 16, "rope": 14,
    "picture": 13, "shovel": 17, "ladder": 30, "chair": 24, "table": 29, "bed": 31,
}
CARRY = [t for t in THINGS if t not in ("ladder", "chair", "table", "bed", "basket")]
BIG = {"house": 48, "tree": 46, "ship": 55, "bus": 44, "car": 38, "train": 54, "castle": 60, "mountain": 90,
       "boat": 37, "bridge": 56, "tower": 57, "wagon": 36}
SIZES = {**{a.name: a.size for a in ANIMALS}, **THINGS, **BIG}

COLOURS = "red blue green yellow black white brown pink purple orange grey".split()
CONTAINERS = "box bag drawer chest bucket jar cupboard basket".split()

# place: the preposition that goes with it
ROOMS = {"kitchen": "in", "garden": "in", "bedroom": "in", "hall": "in", "cellar": "in", "attic": "in",
         "bathroom": "in", "barn": "in", "shed": "in", "office": "in"}
TOWN = {"park": "in", "school": "at", "library": "in", "market": "at", "shop": "in", "station": "at",
        "bakery": "in", "farm": "on", "forest": "in", "beach": "on", "river": "at", "lake": "at", "hill": "on",
        "bridge": "on", "castle": "in", "mill": "at", "harbour": "at", "meadow": "in", "playground": "on",
        "museum": "in", "hospital": "in", "village": "in"}
PLACES = {**ROOMS, **TOWN}

FRUIT = "apple pear plum cherry banana lemon peach grape".split()
VEGETABLES = "carrot potato onion bean pea tomato cabbage pumpkin".split()
DRINKS = "milk tea water juice coffee lemonade".split()
DISHES = "soup bread cheese cake pie rice porridge pancakes noodles salad".split()
KINDS = {  # kind: members
    "fruit": FRUIT, "vegetable": VEGETABLES, "drink": DRINKS,
    "flower": "rose tulip daisy lily violet".split(), "tree": "oak pine birch willow maple".split(),
    "tool": "hammer saw shovel axe rake".split(), "colour": COLOURS,
    "animal": [a.name for a in ANIMALS if a.name not in ("bird", "crow", "owl", "hen", "duck", "goose",
                                                         "ant", "bee", "spider")],
    "bird": "crow owl hen duck goose robin".split(), "insect": "ant bee fly beetle".split(),
    "instrument": "drum flute violin piano trumpet".split(),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "month": ("January February March April May June July August September October November December").split(),
    "season": "spring summer autumn winter".split(),
    "garment": "coat hat scarf shirt glove sock".split(),
    "game": "chess football tennis".split(),
}
DAYS, MONTHS, SEASONS = KINDS["day"], KINDS["month"], KINDS["season"]

# The colours of things.
COLOUR_OF = {
    "snow": "white", "grass": "green", "coal": "black", "blood": "red", "milk": "white", "chocolate": "brown",
    "salt": "white", "smoke": "grey", "the sky": "blue", "the sea": "blue", "the sun": "yellow",
    "the night": "black", "a lemon": "yellow", "a banana": "yellow", "a cherry": "red", "a tomato": "red",
    "a carrot": "orange", "a plum": "purple", "a violet": "purple", "a pea": "green", "a leaf": "green",
    "a frog": "green", "a crow": "black", "a swan": "white", "an elephant": "grey", "a mouse": "grey",
    "a pig": "pink", "a bear": "brown", "a fox": "red", "a pumpkin": "orange", "a strawberry": "red",
    "a cloud": "white", "a potato": "brown", "a pine": "green", "butter": "yellow", "corn": "yellow",
}

# job: (place of work with its preposition, what the job is about, past tense of it)
JOBS = {
    "baker": ("in the bakery", "bakes bread", "baked bread"), "teacher": ("at the school", "teaches children", "taught the children"),
    "farmer": ("on the farm", "grows corn", "fed the cows"), "doctor": ("in the hospital", "helps the sick", "helped the sick"),
    "sailor": ("on a ship", "sails the sea", "cleaned the ship"), "cook": ("in the kitchen", "makes soup", "made soup"),
    "gardener": ("in the garden", "waters flowers", "watered the flowers"), "miller": ("at the mill", "makes flour", "made flour"),
    "librarian": ("in the library", "lends books", "sorted the books"), "shepherd": ("in the meadow", "guards sheep", "counted the sheep"),
    "fisherman": ("at the lake", "catches fish", "caught fish"), "carpenter": ("in the workshop", "makes chairs", "made a chair"),
    "painter": ("in the studio", "paints pictures", "painted a picture"), "driver": ("on the bus", "drives a bus", "drove the bus"),
    "postman": ("in the post office", "brings letters", "brought letters"), "pilot": ("at the airport", "flies planes", "flew a plane"),
    "tailor": ("in the shop", "sews coats", "sewed a coat"), "king": ("in the castle", "rules the land", "sat on the throne"),
}

OPPOSITES = [tuple(p.split("/")) for p in (
    "hot/cold big/small old/new tall/short fast/slow happy/sad good/bad day/night up/down left/right open/closed "
    "full/empty wet/dry hard/soft light/dark early/late first/last near/far high/low "
    "clean/dirty loud/quiet rich/poor strong/weak thick/thin wide/narrow deep/shallow sweet/sour "
    "true/false easy/difficult rough/smooth sharp/blunt begin/end start/stop come/go give/take "
    "push/pull buy/sell win/lose laugh/cry love/hate ask/answer sit/stand find/hide in/out on/off over/under "
    "before/after inside/outside above/below front/back top/bottom always/never many/few more/less yes/no "
    "friend/enemy summer/winter north/south east/west kind/mean asleep/awake alive/dead "
    "straight/crooked safe/dangerous beautiful/ugly clever/silly calm/stormy cheap/expensive lost/found "
    "tight/loose raw/cooked arrive/leave remember/forget build/destroy float/sink whisper/shout "
    "morning/evening everything/nothing everybody/nobody").split()]
# A word has only one opposite, so that every question about it has one answer.
_seen = set()
OPPOSITES = [p for p in OPPOSITES if not (_seen & set(p) or _seen.update(p))]

IRREGULAR = {"mouse": "mice", "goose": "geese", "sheep": "sheep", "wolf": "wolves", "leaf": "leaves",
             "child": "children", "man": "men", "woman": "women", "foot": "feet", "tooth": "teeth", "knife": "knives",
             "potato": "potatoes", "tomato": "tomatoes", "fisherman": "fishermen", "postman": "postmen",
             "calf": "calves", "loaf": "loaves", "shelf": "shelves", "scarf": "scarves", "hero": "heroes",
             "fish": "fish", "ox": "oxen", "half": "halves", "thief": "thieves", "wife": "wives", "life": "lives",
             "person": "people", "foal": "foals"}
UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen").split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()


def plural(noun):
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


NOUNS = sorted({*(a.name for a in ANIMALS), *(a.baby for a in ANIMALS if a.baby), *THINGS, *BIG, *CONTAINERS, *FRUIT,
                *VEGETABLES, *JOBS, *ROOMS, *(p for p in TOWN if p != "beach"), "beach", "flower", "rose", "tulip",
                "daisy", "tool", "hammer", "axe", "rake", "oak", "insect", "garment", "shirt", "glove", "sock", "child",
                "man", "woman", "foot", "tooth", "knife", "leaf", "hero", "loaf", "shelf", "thief", "life", "day",
                "month", "week", "year", "city", "baby", "lady", "story", "party", "berry", "dish", "glass", "bench",
                "wish", "dress", "hand", "window", "door", "star", "cloud", "road", "song", "word", "number", "game"})


def an(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith(("uni", "one")) else "a ") + noun


def cap(text):
    return text[:1].upper() + text[1:]


def join(items, word="and"):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {word} " + items[-1]


def number(n):
    """Returns a number from 0 to 999 in words."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        return TENS[n // 10] + ("-" + UNITS[n % 10] if n % 10 else "")
    rest = n % 100
    return UNITS[n // 100] + " hundred" + (" and " + number(rest) if rest else "")


def count(n, noun):
    return f"{number(n)} {noun if n == 1 else plural(noun)}"
