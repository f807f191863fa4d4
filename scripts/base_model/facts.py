# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates text about facts of the world: opposites, plurals, the calendar, sizes, kinds, numbers; as prose, dialogue, lists.

Each topic is phrased in several ways, so that the model learns the fact and not a sentence.
"""
from world import (ANIMAL, ANIMALS, COLOUR_OF, COLOURS, DAYS, JOBS, KINDS, MONTHS, NOUNS, OPPOSITES, ORDINALS, PEOPLE, SEASONS,
                   SIZES, THINGS, an, cap, join, number, plural)


def two(rng):
    return [p.name for p in rng.sample(PEOPLE, 2)]


def quiz(rng, question, short, full):
    """One question and answer as dialogue."""
    a, b = two(rng)
    asker = rng.choice((a, "the teacher", "Grandfather", "the mother"))
    said = rng.choice((f'"{short}," said {b}.', f'"{short}," said {b}.', f'"{full}," answered {b}.', f'{b} said, "{short}."', f'{b} knew it. "{short}!"'))
    return rng.choice((f'"{question}" asked {asker}. {said}', f'{cap(asker)} asked, "{question}" {said}'))


def opposite(rng):
    a, b = rng.choice(OPPOSITES)
    if rng.random() < 0.5:
        a, b = b, a
    return rng.choice((
        f"The opposite of {a} is {b}.", f"{cap(a)} is the opposite of {b}.", f"{cap(a)} and {b} are opposites.", f"What is not {a} may be {b}, for {b} is the opposite of {a}.",
        quiz(rng, f"What is the opposite of {a}?", cap(b), f"The opposite of {a} is {b}"), quiz(rng, f"What is the opposite of {a}?", cap(b), f"It is {b}"),
        quiz(rng, f"Which word is the opposite of {a}?", cap(b), f"The word {b}")))


def plurals(rng):
    n = rng.choice(NOUNS)
    p = plural(n)
    k = number(rng.randint(2, 12))
    return rng.choice((f"One {n}, {k} {p}.", f"The plural of {n} is {p}.", f"If there is more than one {n}, we say {p}.", f"Here is {an(n)}. There are {k} {p}.", f"{cap(an(n))} is alone, but {k} {p} are many.",
                       quiz(rng, f"What is the plural of {n}?", cap(p), f"The plural of {n} is {p}"), quiz(rng, f"One {n}, two what?", cap(p), f"Two {p}")))


def calendar(rng):
    names, what = rng.choice(((DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (MONTHS, "month"), (SEASONS, "season")))
    i = rng.randrange(len(names))
    a, b = names[i], names[(i + 1) % len(names)]
    out = [f"After {a} comes {b}.", f"Before {b} comes {a}.", f"{cap(b)} comes after {a}.", f"{cap(a)} comes before {b}.", f"{cap(a)} is followed by {b}.",
           quiz(rng, f"Which {what} comes after {a}?", cap(b), f"After {a} comes {b}"), quiz(rng, f"Which {what} comes before {b}?", cap(a), f"Before {b} comes {a}")]
    if what == "day":
        out += [f"If today is {a}, tomorrow is {b}.", f"If today is {b}, yesterday was {a}.", quiz(rng, f"Today is {a}. What day is tomorrow?", b, f"Tomorrow is {b}"),
                quiz(rng, f"Today is {b}. What day was yesterday?", a, f"Yesterday was {a}")]
    n = rng.randint(3, 6)
    out.append(f"The {what}s go like this: {', '.join(names[(i + j) % len(names)] for j in range(n))} and so on.")
    return rng.choice(out)


def bigger(rng):
    names = sorted(SIZES)
    while True:
        a, b = rng.sample(names, 2)
        if SIZES[a] > SIZES[b] + 2:
            break
    pair = rng.sample((a, b), 2)
    q, w = rng.choice((("bigger", a), ("smaller", b)))
    return rng.choice((f"{cap(an(a))} is bigger than {an(b)}.", f"{cap(an(b))} is smaller than {an(a)}.", f"The {a} is big and the {b} is small.", f"{cap(plural(a))} are bigger than {plural(b)}.",
                       quiz(rng, f"Which is {q}, {an(pair[0])} or {an(pair[1])}?", cap(an(w)), f"{cap(an(w))} is {q}"),
                       quiz(rng, f"What is {q}, {an(pair[0])} or {an(pair[1])}?", cap(an(w)), f"{cap(an(w))}, for {an(a)} is bigger than {an(b)}"),
                       quiz(rng, f"Is {an(a)} bigger than {an(b)}?", "Yes", f"Yes, {an(a)} is bigger"), quiz(rng, f"Is {an(b)} bigger than {an(a)}?", "No", f"No, {an(a)} is bigger")))


def kinds(rng):
    kind = rng.choice(sorted(KINDS))
    members = KINDS[kind]
    x = rng.choice(members)
    named = x if kind in ("day", "month", "season", "colour", "drink", "game") else an(x)
    few = rng.sample(members, min(len(members), rng.randint(2, 4)))
    other = rng.choice([k for k in sorted(KINDS) if k != kind])
    return rng.choice((f"{cap(named)} is {an(kind)}.", f"{cap(join(few))} are {plural(kind)}.", f"There are many {plural(kind)}: {join(few)}.", f"{cap(named)} is {an(kind)} and not {an(other)}.",
                       quiz(rng, f"What is {named}?", cap(an(kind)), f"{cap(named)} is {an(kind)}"), quiz(rng, f"Is {named} {an(kind)} or {an(other)}?", cap(an(kind)), f"It is {an(kind)}"),
                       f"I know {number(len(few))} {plural(kind)}: {join(few)}.", f"An example of {an(kind)} is {named}."))


def colours(rng):
    thing = rng.choice(sorted(COLOUR_OF))
    c = COLOUR_OF[thing]
    return rng.choice((f"{cap(thing)} is {c}.", f"The colour of {thing} is {c}.", f"It was as {c} as {thing}.", f"{cap(thing)} is {c}, not {rng.choice([x for x in COLOURS if x != c])}.",
                       quiz(rng, f"What colour is {thing}?", cap(c), f"{cap(thing)} is {c}"), quiz(rng, f"What is the colour of {thing}?", cap(c), f"It is {c}")))


def animal(rng):
    x = rng.choice(ANIMALS)
    a = an(x.name)
    legs = number(x.legs) if x.legs else "no"
    out = [f"{cap(a)} has {legs} legs.", f"{cap(plural(x.name))} have {legs} legs.", f"{cap(a)} can {x.moves}.", f"{cap(a)} lives {x.home}.", f"{cap(plural(x.name))} eat {x.food}.", f"{cap(a)} likes {x.food}.",
           quiz(rng, f"How many legs does {a} have?", cap(legs if x.legs else "none"), f"{cap(a)} has {legs} legs"), quiz(rng, f"Where does {a} live?", cap(x.home), f"{cap(a)} lives {x.home}"),
           quiz(rng, f"What does {a} eat?", cap(x.food), f"{cap(a)} eats {x.food}")]
    if x.sound:
        sound = [f'A {x.name} says "{x.sound}".', quiz(rng, f"What does the {x.name} say?", cap(x.sound), f"The {x.name} says {x.sound}")]
        if x.sound not in ("sing", "howl", "roar", "bark", "growl", "trumpet", "bleat"):
            sound.append(f'"{cap(x.sound)}, {x.sound}," said the {x.name}.')
        out += sound + sound
    if x.baby:
        out += [f"A young {x.name} is called {an(x.baby)}.", f"{cap(an(x.baby))} is a young {x.name}.", quiz(rng, f"What is a young {x.name} called?", cap(an(x.baby)), f"It is called {an(x.baby)}")] * 2
    return " ".join([rng.choice(out)] + ([rng.choice(out[:6])] if rng.random() < 0.4 else []))


def jobs(rng):
    job = rng.choice(sorted(JOBS))
    place, does, _ = JOBS[job]
    return rng.choice((f"{cap(an(job))} works {place}.", f"{cap(an(job))} {does}.", f"Who {does}? {cap(an(job))}.", quiz(rng, f"Where does {an(job)} work?", cap(place), f"{cap(an(job))} works {place}"),
                       quiz(rng, f"Who {does}?", cap(an(job)), f"{cap(an(job))} {does}"), f"Somebody who {does} is called {an(job)}."))


def numbers(rng):
    n = rng.randint(1, 99) if rng.random() < 0.7 else rng.randint(100, 998)
    x, y = rng.randint(1, 10), rng.randint(1, 10)
    big, small = max(x, y) + 1, min(x, y)
    return rng.choice((f"The number {n} is {number(n)}.", f"{cap(number(n))} is written {n}.", f"After {number(n)} comes {number(n + 1)}.", f"Before {number(n + 1)} comes {number(n)}.", f"{n}, {n + 1}, {n + 2}",
                       ", ".join(number(i) for i in range(x, x + rng.randint(3, 6))), f"{cap(number(x))} and {number(y)} make {number(x + y)}.", f"{cap(number(big))} is more than {number(small)}.", f"{x} + {y} = {x + y}",
                       quiz(rng, f"What is {number(x)} and {number(y)}?", cap(number(x + y)), f"{cap(number(x))} and {number(y)} make {number(x + y)}"),
                       quiz(rng, f"Which number comes after {number(n)}?", cap(number(n + 1)), f"After {number(n)} comes {number(n + 1)}"),
                       quiz(rng, f"Which number comes before {number(n + 1)}?", cap(number(n)), f"Before {number(n + 1)} comes {number(n)}"),
                       quiz(rng, f"What is more, {number(small)} or {number(big)}?", cap(number(big)), f"{cap(number(big))} is more")))


def word_list(rng):
    """A list of words, and statements about their number and order."""
    words = rng.sample(sorted(THINGS) + COLOURS + sorted(ANIMAL), rng.randint(2, 7))
    n = len(words)
    row = ", ".join(words)
    i = rng.randrange(n)
    said = [f"There are {number(n)} words.", f"The first word is {words[0]}.", f"The last word is {words[-1]}.", f"The {ORDINALS[i]} word is {words[i]}."]
    if i + 1 < n:
        said.append(f"After {words[i]} comes {words[i + 1]}.")
    talk = [quiz(rng, "How many words are there?", cap(number(n)), f"There are {number(n)} words"), quiz(rng, "How many things did I say?", cap(number(n)), f"You said {number(n)} things"),
            quiz(rng, "What is the first word?", cap(words[0]), f"The first word is {words[0]}"), quiz(rng, "What is the last word?", cap(words[-1]), f"The last word is {words[-1]}")]
    intro = rng.choice((f"Here are some words: {row}.", f"Read these words: {row}.", f"{rng.choice(PEOPLE).name} said these words: {row}.", f"A list: {row}."))
    return " ".join([intro] + rng.sample(said, rng.randint(1, 2)) + ([rng.choice(talk)] if rng.random() < 0.7 else []))


def on_the_table(rng):
    """Counts things at a place."""
    things = rng.sample([t for t in sorted(THINGS) if t not in ("bed", "table", "ladder", "chair")], rng.randint(2, 6))
    where = rng.choice(("on the table", "in the box", "on the shelf", "in the bag", "under the bed", "on the floor"))
    n = len(things)
    missing = rng.choice([t for t in sorted(THINGS) if t not in things])
    x = rng.choice(things)
    a, b = two(rng)
    out = [f"There are {number(n)} things {where}: {join(an(t) for t in things)}.", f"{cap(where)} there are {join(an(t) for t in things)}. That makes {number(n)} things."]
    talk = [quiz(rng, f"How many things are {where}?", cap(number(n)), f"There are {number(n)} things {where}"), quiz(rng, f"Is there {an(x)} {where}?", "Yes", f"Yes, there is {an(x)}"),
            quiz(rng, f"Is there {an(missing)} {where}?", "No", f"No, there is no {missing}")]
    return rng.choice(out) + (" " + rng.choice(talk) if rng.random() < 0.8 else f" {a} took the {x}. So there was no {x} {where} any more.")


def spelling(rng):
    w = rng.choice(NOUNS)
    return rng.choice((f"The word {w} is spelled {', '.join(w)}.", f"{' '.join(w)} spells {w}.", f"The word {w} begins with {w[0]} and ends with {w[-1]}."))


def facts_document(rng):
    """A few facts about one or two topics."""
    n = rng.choices((1, 2, 3, 4, 6), (2, 3, 4, 3, 2))[0]
    topics = rng.choices([f for f, _ in TOPICS], [w for _, w in TOPICS], k=rng.randint(1, 2))
    return rng.choice((" ", " ", "\n")).join(rng.choice(topics)(rng) for _ in range(n))


TOPICS = ((opposite, 10), (plurals, 12), (calendar, 8), (bigger, 12), (kinds, 7), (colours, 6), (animal, 10), (jobs, 5), (numbers, 8), (word_list, 14), (on_the_table, 8),
          (spelling, 2))
