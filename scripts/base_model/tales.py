# SPDX-License-Identifier: GPL-3.0-or-later
"""Longer prose: descriptions, families, fables, journeys, recipes, games. Each function returns one document."""
from stories import ending, opening
from world import (ANIMAL, ANIMALS, BIG, CARRY, COLOURS, CONTAINERS, DISHES, DRINKS, FRUIT, JOBS, OPPOSITES, PEOPLE, PLACES,
                   ROOMS, SIZES, TOWN, VEGETABLES, an, cap, count, join, number, plural)

GOOD = "kind brave clever strong quiet cheerful patient honest".split()
BAD = "mean lazy greedy proud silly rude".split()


def described(rng):
    """A person: age, looks, work, likes; then somebody asks."""
    a, b = rng.sample(PEOPLE, 2)
    age, hair, eyes = rng.randint(5, 80), rng.choice("black brown red grey yellow white".split()), rng.choice("blue brown green grey".split())
    likes, hates = rng.sample(DISHES + FRUIT + DRINKS + ["singing", "swimming", "reading", "dancing", "the rain", "the snow"], 2)
    job, trait = rng.choice(sorted(JOBS)), rng.choice(GOOD)
    said = [f"{a.name} is {number(age)} years old.", f"{cap(a.he)} has {hair} hair and {eyes} eyes.", f"{cap(a.he)} is very {trait}.",
            f"{cap(a.he)} likes {likes} but not {hates}."]
    if age > 20:
        said.append(f"{cap(a.he)} is {an(job)} and works {JOBS[job][0]}.")
    elif age < 18:
        said.append(f"{cap(a.he)} goes to school and wants to be {an(job)}.")
    talk = [("How old is {}?", f"{cap(number(age))} years old"), ("What colour is the hair of {}?", cap(hair)), ("What colour are the eyes of {}?", cap(eyes)), ("What does {} like?", cap(likes))]
    lines = said[:1] + rng.sample(said[1:], len(said) - 1)
    if rng.random() < 0.6:
        q, answer = rng.choice(talk)
        c = rng.choice([p for p in PEOPLE if p not in (a, b)])
        lines.append(f'"{q.format(a.name)}" asked {b.name}. "{answer}," said {c.name}.')
    return " ".join(lines)


def family(rng):
    women, men = [p for p in PEOPLE if p.he == "she"], [p for p in PEOPLE if p.he == "he"]
    mother, girl = rng.sample(women, 2)
    father, boy = rng.sample(men, 2)
    m, f, g, b = mother.name, father.name, girl.name, boy.name
    lines = [rng.choice((f"{m} and {f} have two children: {g} and {b}.", f"{g} and {b} are the children of {m} and {f}.", f"The mother of {g} and {b} is called {m}. Their father is {f}."))]
    said = [f"{g} is the sister of {b}.", f"{b} is the brother of {g}.", f"{m} is the mother of {b}.", f"{f} is the father of {g}.", f"{g} is the daughter of {m}.", f"{b} is the son of {f}.",
            f"{m} is the wife of {f}.", f'"Who is your mother?" asked the teacher. "{m}," said {rng.choice((g, b))}.', f'"Who is your father?" asked the teacher. "{f}," said {rng.choice((g, b))}.',
            f'"Do you have a brother?" asked the doctor. "Yes, his name is {b}," said {g}.', f'"Do you have a sister?" asked the doctor. "Yes, her name is {g}," said {b}.',
            f"They live in a {rng.choice(COLOURS)} house near the {rng.choice(sorted(TOWN))}.", f"{g} is {rng.choice(('older', 'younger', 'taller'))} than {b}."]
    return " ".join(lines + rng.sample(said, rng.randint(2, 4)))


def fable(rng):
    """Two animals, a trait each, and what comes of it."""
    a, b = rng.sample(ANIMALS[2:], 2)
    good, bad, food, place = rng.choice(GOOD), rng.choice(BAD), rng.choice(FRUIT + VEGETABLES), rng.choice("forest meadow farm hill river lake".split())
    x, y = f"the {a.name}", f"the {b.name}"
    big, small = (x, y) if a.size > b.size else (y, x)
    lines = [rng.choice((f"Once upon a time there lived {an(a.name)} and {an(b.name)} {PLACES[place]} the {place}.", f"Long ago {an(a.name)} met {an(b.name)} {PLACES[place]} the {place}.")),
             f"{cap(x)} was {good}, but {y} was {bad}.",
             rng.choice((f"One day they found {an(food)}.", f"In winter they had only one {food}.", f"One morning {an(food)} fell from a wagon."))]
    kind = rng.randrange(3)
    if kind == 0:
        lines += [f'"It is mine," said {y}. "Let us share it," said {x}.', f"{cap(y)} took the {food} and ran away." if rng.random() < 0.5 else f"{cap(y)} ate the whole {food} and was ill.",
                  rng.choice((f"The next day {y} fell into a hole, and only {x} came to help.", f"The next day {x} found {number(rng.randint(2, 9))} {plural(food)}."))]
        lines.append(rng.choice((f'"I am sorry," said {y}. From then on they shared everything.', f"So {x} was happy and {y} was not.", f"{cap(y)} was never {bad} again.")))
    elif kind == 1:
        lines += [f'"Who is bigger?" asked {y}. "{cap(big)}," said the owl.', f"So {big} got the big half of the {food}, and {small} got the small half." if rng.random() < 0.5 else f"So {small} was angry, but {big} gave {small} the whole {food}."]
    else:
        lines += [f"{cap(x)} gave half of the {food} to {y}.", f'"Why are you so {good}?" asked {y}. "Because we are friends," said {x}.', f"After that {y} wanted to be {good} too."]
    return " ".join(lines)


def journey(rng):
    """The stations of a journey in order, and how it was."""
    a, b = rng.sample(PEOPLE, 2)
    stops = rng.sample(sorted(TOWN), rng.randint(3, 4))
    how, verb = rng.choice((("by train", "took the train"), ("by bus", "took the bus"), ("by boat", "took the boat"), ("on foot", "walked"), ("on a horse", "rode a horse"), ("by car", "took the car")))
    start, _ = opening(rng)
    lines = [f"{start} {a.name} and {b.name} {rng.choice((f'went on a journey {how}', f'{verb} to see the world', f'travelled {how}'))}.", f"First they came to the {stops[0]}."]
    for s in stops[1:-1]:
        lines.append(rng.choice((f"From the {stops[stops.index(s) - 1]} they went on to the {s}.", f"Then they came to the {s}.", f"After the {stops[stops.index(s) - 1]} they saw the {s}.")))
    lines.append(f"The last place was the {stops[-1]}.")
    lines.append(rng.choice((f"They came home in the {rng.choice(('evening', 'morning', 'night'))}.", f'"How did you travel?" asked the mother. "{cap(how)}," said {b.name}.', f'"What did you see first?" asked Grandfather. "The {stops[0]}," said {a.name}.',
                             f'"What did you see last?" asked Grandfather. "The {stops[-1]}," said {a.name}.', f"{a.name} liked the {rng.choice(stops)} best.", ending(rng, a.name, b.name))))
    return " ".join(lines)


def recipe(rng):
    dish = rng.choice(("soup", "salad", "pie", "cake", "porridge", "pancakes"))
    parts = rng.sample((VEGETABLES if dish in ("soup", "salad", "pie") else FRUIT), rng.randint(2, 3))
    goods = [count(rng.randint(1, 6), p) for p in parts]
    pot = rng.choice(("pot", "bowl", "pan"))
    minutes = number(rng.choice((5, 10, 15, 20, 30, 40)))
    steps = [f"Take {join(goods)}.", rng.choice((f"Wash the {plural(parts[0])}.", f"Cut the {plural(parts[0])}.")), f"Put everything into a {pot}.", rng.choice((f"Cook it for {minutes} minutes.", f"Wait {minutes} minutes.")),
             rng.choice(("Add some salt.", "Add some butter.", "Add a little milk.")), f"Now the {dish} {'are' if dish == 'pancakes' else 'is'} ready."]
    if rng.random() < 0.5:
        return f"How to make {dish}: " + " ".join(steps)
    name = rng.choice(PEOPLE).name
    return f"{name} makes {dish}. " + " ".join(f"{i}. {s}" for i, s in enumerate(steps[:-1], 1)) + f" {steps[-1]}"


def hide_and_seek(rng):
    seeker, *others = rng.sample(PEOPLE, rng.randint(3, 4))
    spots = dict(zip((o.name for o in others), rng.sample(["behind the tree", "under the bed", "in the barn", "behind the door", "in the cupboard", "under the table", "behind the house", "in the cellar", "on the wagon"], len(others))))
    lines = [f"The children played hide and seek. {seeker.name} counted to {number(rng.choice((10, 20, 30, 50, 100)))}."]
    lines += [f"{name} hid {spot}." for name, spot in spots.items()]
    found = rng.sample(sorted(spots), len(spots))
    for i, name in enumerate(found):
        lines.append(rng.choice((f"{'First' if i == 0 else 'Then'} {seeker.name} found {name} {spots[name]}.", f"{seeker.name} looked {spots[name]} and saw {name}.", f'"I see you {spots[name]}, {name}!" said {seeker.name}.')))
    name = rng.choice(found)
    if rng.random() < 0.5:
        lines.append(f'"Where did you hide, {name}?" asked {seeker.name}. "{cap(spots[name])}," said {name}.')
    return " ".join(lines)


def room(rng):
    """The furniture of a room and its places."""
    place = rng.choice(sorted(ROOMS))
    things = rng.sample(sorted(CARRY), rng.randint(2, 4))
    spots = rng.sample(["on the table", "under the table", "on the chair", "near the door", "by the window", "on the wall", "on the floor", "on the shelf", "under the bed"], len(things))
    colours = rng.sample(COLOURS, len(things))
    told = [rng.choice((f"There is {an(c + ' ' + t)} {s}.", f"{cap(an(c + ' ' + t))} is {s}.", f"{cap(s)} there is {an(c + ' ' + t)}.")) for t, s, c in zip(things, spots, colours)]
    i = rng.randrange(len(things))
    a, b = rng.sample(PEOPLE, 2)
    q, short = rng.choice(((f"Where is the {things[i]}?", cap(spots[i])), (f"What colour is the {things[i]}?", cap(colours[i])), (f"What is {spots[i]}?", f"The {colours[i]} {things[i]}")))
    return " ".join([rng.choice((f"This is the {place}.", f"Look {PLACES[place]} the {place}.", f"{a.name} is {PLACES[place]} the {place}."))] + told + [f'"{q}" asked {a.name}. "{short}," said {b.name}.' if rng.random() < 0.7 else f"So the {things[i]} is {spots[i]}."])


def growing(rng):
    a = rng.choice(PEOPLE)
    plant = rng.choice(FRUIT + VEGETABLES + ["rose", "tulip", "oak"])
    n = rng.randint(2, 12)
    return " ".join((f"In spring {a.name} put a seed into the ground {rng.choice(('in the garden', 'behind the house', 'near the river'))}.", rng.choice((f"Every day {a.he} gave it water.", "The rain came and then the sun.", f"{cap(a.he)} waited for many weeks.")),
                     f"In summer there was a small plant{rng.choice(('', ' with green leaves', ' near the wall'))}.", f"In autumn {a.name} found {count(n, plant)}." if plant not in ("oak",) else "After many years it was a tall oak.",
                     rng.choice((f'"How long did you wait?" asked Grandmother. "From spring to autumn," said {a.name}.', f"{cap(a.he)} was proud.", "In winter there was snow on the ground, and everything slept.")) ))


def wishes(rng):
    """A promise or a warning, and what followed from it."""
    a, b = rng.sample(PEOPLE, 2)
    warn, sad = rng.choice((("Take your umbrella, for it will rain", "became wet"), ("Do not eat so much cake", "was ill"), ("Do not go on the ice", "fell into the water"), ("Put on your coat, for it is cold", "was cold"), ("Do not run so fast", "fell"),
                            ("Go to bed early", "was tired the next day"), ("Do not touch the hot kettle", "burned a finger"), ("Close the door of the coop", "lost a hen"), ("Do not forget your key", "could not open the door"), ("Do not wake the dog", "had to run")))
    obeyed = rng.random() < 0.5
    rest = rng.choice((f"{a.name} listened and was safe.", f"{a.name} did what {b.name} said, and nothing bad happened.")) if obeyed else rng.choice((f"But {a.name} did not listen and {sad}.", f"But {a.name} laughed and went away. Soon {a.he} {sad}."))
    last = rng.choice((f'"You were right," said {a.name} to {b.name}.', f'"Thank you, {b.name}," said {a.name}.' if obeyed else f'"Next time I will listen," said {a.name}.'))
    return f'"{warn}," said {b.name} to {a.name}. {rest} {last}'


def contrast(rng):
    """Two people or things that differ, told through opposites."""
    adjectives = [p for p in OPPOSITES if p[0] in ("big", "old", "fast", "happy", "full", "clean", "loud", "rich", "strong", "thick", "wide", "deep", "sweet", "rough", "sharp", "brave", "kind", "calm", "cheap", "tight", "wet", "hard", "good", "high", "tall",
                                                   "straight", "safe", "beautiful", "clever", "awake", "hot", "open", "light")]
    x, y = rng.choice(adjectives)
    thing = rng.choice(sorted({*CARRY, "road", "house", "song", "river", "room", "day", *list(ANIMAL)[5:12]}))
    a, b = rng.sample(PEOPLE, 2)
    one, other = rng.sample((x, y), 2)
    return rng.choice((f"One {thing} is {one}, the other is {other}.", f"{a.name}'s {thing} is {one}, but {b.name}'s {thing} is {other}.", f'"Is your {thing} {one}?" asked {a.name}. "No, it is {other}," said {b.name}.',
                       f"The {thing} of {a.name} is {one}. The {thing} of {b.name} is not {one}, it is {other}.", f"Yesterday the {thing} was {one}. Today it is not {one} any more. It is {other}."))


def measured(rng):
    """Large and small things seen together."""
    a, b = rng.sample(PEOPLE, 2)
    seen = rng.sample([s for s in sorted(SIZES) if s in ANIMAL or s in BIG], 3)
    seen.sort(key=SIZES.get)
    if SIZES[seen[0]] == SIZES[seen[1]] or SIZES[seen[1]] == SIZES[seen[2]]:
        return measured(rng)
    mixed = rng.sample(seen, 3)
    place = rng.choice(sorted(TOWN))
    tail = rng.choice((f"The biggest was the {seen[2]} and the smallest was the {seen[0]}.", f'"Which was the biggest?" asked {b.name}. "The {seen[2]}," said {a.name}.', f'"Which was the smallest?" asked {b.name}. "The {seen[0]}," said {a.name}.',
                       f"The {seen[1]} was bigger than the {seen[0]} but smaller than the {seen[2]}."))
    return f"Near the {place} {a.name} saw {join(an(m) for m in mixed)}. {tail}"


def choice(rng):
    """Two containers, a right and a wrong one."""
    a, b = rng.sample(PEOPLE, 2)
    c, d = rng.sample(CONTAINERS, 2)
    x, y = rng.sample(CARRY, 2)
    wanted, where = rng.choice(((x, c), (y, d)))
    other, there = (y, d) if wanted == x else (x, c)
    return " ".join((f"There were two things to open: a {c} and a {d}.", f"In the {c} there was {an(x)}, and in the {d} there was {an(y)}.", f"{a.name} wanted the {wanted}.",
                     rng.choice((f"So {a.he} opened the {where}.", f'"Open the {where}," said {b.name}.', f"{cap(a.he)} opened the {there}, but there was only the {other}. Then {a.he} opened the {where} and took the {wanted}."))))


TALES = ((described, 6), (family, 4), (fable, 6), (journey, 4), (recipe, 3), (hide_and_seek, 4), (room, 7), (growing, 2), (wishes, 4), (contrast, 5), (measured, 5), (choice, 4))
