# SPDX-License-Identifier: GPL-3.0-or-later
"""Story generators: each function returns the text of one random story."""
from scene import make_scene
from world import (ANIMALS, CARRY, COLOURS, CONTAINERS, DAYS, DISHES, DRINKS, FRUIT, JOBS, ORDINALS, PEOPLE, PLACES, TOWN,
                   VEGETABLES, an, cap, count, join, number, plural)

OPENINGS = ("One day", "One morning", "One evening", "Once", "Last week", "On {day}", "Yesterday", "In {season}", "After school",
            "One {weather} day", "On a {weather} {part}", "Long ago")
WEATHER = {  # kind of day: what happens on it
    "sunny": ("The sun shone.", "The sky was blue.", "It was warm outside."),
    "rainy": ("It rained all day.", "The rain fell on the roof.", "The streets were wet."),
    "windy": ("The wind blew hard.", "The wind shook the trees.", "Leaves flew through the air."),
    "snowy": ("Snow fell from the sky.", "Everything was white with snow.", "It was cold and the lake was frozen."),
    "foggy": ("There was fog over the fields.", "Nobody could see far.", "The fog was thick."),
    "stormy": ("There was thunder and lightning.", "A storm came from the west.", "The storm was loud."),
    "cloudy": ("The sky was grey.", "There were clouds in the sky.", "It looked like rain."),
}
GREETINGS = ('"Good morning," said {a}.', '"Hello, {b}!" said {a}.', '"Good day, {b}," said {a}.', '"How are you, {b}?" asked {a}. "I am well, thank you," said {b}.')
ENDINGS = ("They were happy.", "Then they went home.", "It was a good day.", "That was the end of the day.", "They all laughed.",
           "In the evening everybody went to bed.", "They wanted to do it again.", "{a} told {b} about it.", "So they stayed friends.",
           "That night {a} slept well.", "{a} never forgot that day.", "And that is the end of the story.")


def opening(rng):
    weather = rng.choice(sorted(WEATHER))
    text = rng.choice(OPENINGS).format(day=rng.choice(DAYS), season=rng.choice(("spring", "summer", "autumn", "winter")),
                                       weather=weather, part=rng.choice(("morning", "evening", "day", "night")))
    return text, weather


def ending(rng, a, b):
    return rng.choice(ENDINGS).format(a=a, b=b)


def ask(rng, fact, people):
    """A question and its answer as a short dialogue. Nobody speaks of himself by name."""
    names = [p.name for p in people if p.name not in fact.question and p.name not in fact.short]
    while len(names) < 2:
        names.append(rng.choice([p.name for p in PEOPLE if p.name not in names and p.name not in fact.question + fact.short]))
    a, b = rng.sample(names, 2)
    short = fact.short
    style = rng.random()
    if style < 0.45:
        answer = f'"{short}," said {b}.' if rng.random() < 0.7 else f'"{short}," answered {b}.'
    elif style < 0.75:
        answer = f'"{fact.full}" said {b}.' if not fact.full.endswith(".") else f'"{fact.full[:-1]}," said {b}.'
    else:
        answer = f'{b} said, "{short}."'
    asked = rng.choice((f'"{fact.question}" asked {a}.', f'{a} asked, "{fact.question}"', f'{a} asked {b}: "{fact.question}"'))
    return f"{asked} {answer}"


def scene_story(rng):
    """A simulated scene with things and places, followed by questions."""
    flavour = rng.choice(("hold", "move", "move", "hide"))
    scene, told = make_scene(rng, flavour, rng.randint(2, 6), people=(2, 4) if flavour != "move" else (2, 3))
    start, weather = opening(rng)
    names = [p.name for p in scene.people]
    if rng.random() < 0.6:
        told.insert(0, rng.choice((
            f"{start} {join(names)} were playing together.", f"{start} {join(names)} met.", f"{start} {names[0]} was with {join(names[1:])}.",
            f"{start} {names[0]} visited {join(names[1:])}.", f"There were {number(len(names))} friends: {join(names)}.")))
        if rng.random() < 0.2 and weather in told[0]:
            told.insert(1, rng.choice(WEATHER[weather]))
    text = " ".join(told)
    facts = scene.facts() + scene.yes_no()
    for fact in rng.sample(facts, min(len(facts), rng.randint(1, 3))):
        text += (" " if rng.random() < 0.7 else "\n") + ask(rng, fact, scene.people)
    if rng.random() < 0.3:
        text += " " + ending(rng, names[0], names[1])
    return text


def short_scene(rng):
    """Two or three sentences and a question about them."""
    scene, told = make_scene(rng, rng.choice(("hold", "move", "hide")), rng.randint(0, 2), people=(2, 2), things=(1, 2), recall=0)
    return " ".join(told) + " " + ask(rng, rng.choice(scene.facts() + scene.yes_no()), scene.people)


def search(rng):
    """Something is lost and looked for in several places."""
    a, b = rng.sample(PEOPLE, 2)
    thing, colour = rng.choice(CARRY), rng.choice(COLOURS)
    places = rng.sample(sorted(PLACES), rng.randint(2, 4))
    start, weather = opening(rng)
    he = a.he
    lines = [rng.choice((f"{start} {a.name} lost {a.his} {colour} {thing}.", f"{start} {a.name} could not find {a.his} {colour} {thing}.",
                         f"{start} the {colour} {thing} of {a.name} was gone."))]
    lines.append(rng.choice((f'"Where is my {thing}?" asked {a.name}. "I do not know," said {b.name}.', f"{cap(he)} was very sad.",
                             f"{b.name} wanted to help {a.him}.", f'"I will help you," said {b.name}.', rng.choice(WEATHER[weather]))))
    for i, place in enumerate(places[:-1]):
        lines.append(rng.choice((f"{cap(he)} looked {PLACES[place]} the {place}, but it was not there.", f"First they went to the {place}." if i == 0 else
                                 f"Then they went to the {place}.", f"It was not {PLACES[place]} the {place}.")))
    last = places[-1]
    lines.append(rng.choice((f"At last {b.name} found the {thing} {PLACES[last]} the {last}.", f"Then {a.name} went to the {last}, and there was the {colour} {thing}.",
                             f"In the end the {thing} was {PLACES[last]} the {last}.")))
    lines.append(rng.choice((f'"Here is your {colour} {thing}," said {b.name}. "Thank you," said {a.name}.', f"Now {a.name} was happy, for {he} had {a.his} {colour} {thing} again.",
                             f'"Where was the {thing}?" asked the mother. "{cap(PLACES[last])} the {last}," said {a.name}.',
                             f"{a.name} took the {thing} home and put it on the table.")))
    return " ".join(lines)


def feelings(rng):
    """Cause and effect: somebody feels something, so does what helps, and feels better."""
    a, b = rng.sample(PEOPLE, 2)
    start, _ = opening(rng)
    food, drink, thing = rng.choice(DISHES), rng.choice(DRINKS), rng.choice(CARRY)
    place, pet = rng.choice(sorted(TOWN)), rng.choice([x for x in ANIMALS if x.pet]).name
    cases = (
        ("hungry", (f"{a.he} had not eaten all day", "there was nothing to eat at home"), (f"{a.he} ate some {food}", f"{b.name} gave {a.him} some {food}"), "full"),
        ("thirsty", (f"{a.he} had run a long way", "it was very hot"), (f"{a.he} drank some {drink}", f"{b.name} gave {a.him} some {drink}"), "well again"),
        ("tired", (f"{a.he} had worked all day", "it was late"), (f"{a.he} went to bed", f"{a.he} slept for {number(rng.randint(8, 12))} hours"), "awake and strong"),
        ("cold", ("it was snowing", "the wind was cold"), (f"{a.he} put on a coat", f"{a.he} sat by the fire", f"{b.name} gave {a.him} a scarf"), "warm"),
        ("wet", ("it was raining", f"{a.he} fell into the lake"), (f"{a.he} put on dry clothes", f"{a.he} sat in the sun"), "dry"),
        ("sad", (f"{a.his} {thing} was broken", f"{a.his} {pet} ran away", "nobody came to play"), (f"{b.name} came to {a.him}", f"{b.name} sang a song for {a.him}"), "happy"),
        ("afraid", ("it was dark", "there was a loud noise", "a wolf howled"), (f"{b.name} lit a candle", f"{b.name} took {a.his} hand"), "brave"),
        ("angry", (f"{b.name} broke {a.his} {thing}", f"{b.name} did not come to the {place}"), (f"{b.name} said sorry", f"{b.name} gave {a.him} a cake"), "calm"),
        ("bored", ("there was nothing to do", "it rained all day"), (f"{a.he} read a book", f"{a.he} played with the {pet}", f"{a.he} went to the {place}"), "cheerful"),
        ("dirty", (f"{a.he} had worked in the garden", f"{a.he} fell into the mud"), (f"{a.he} washed", f"{a.he} took a bath"), "clean"),
        ("ill", (f"{a.he} ate too much cake", f"{a.he} had been out in the rain"), (f"the doctor gave {a.him} some medicine", f"{a.he} stayed in bed and drank tea"), "well"),
    )
    feeling, why, then, after = rng.choice(cases)
    why, then = rng.choice(why), rng.choice(then)
    lines = [rng.choice((f"{start} {a.name} was {feeling}, because {why}.", f"{start} {a.name} was {feeling}. {cap(why)}.", f"{cap(why)}, so {a.name} was {feeling}."
                         if a.he not in why.split() and a.his not in why.split() else f"{a.name} was {feeling} because {why}."))]
    if rng.random() < 0.5:
        lines.append(rng.choice((f'"Why are you {feeling}?" asked {b.name}. "Because {why}," said {a.name}.' if a.he not in why.split() and a.his not in why.split() and b.name not in why
                                 else f'"What is wrong?" asked {b.name}. "I am {feeling}," said {a.name}.',
                                 f'"I am so {feeling}," said {a.name}.', f'{b.name} saw that {a.name} was {feeling}.')))
    lines.append(rng.choice((f"So {then}.", f"Then {then}.", f"{cap(then)}.")))
    lines.append(rng.choice((f"Now {a.name} was {after}.", f"Soon {a.he} was {after}.", f"After that {a.he} was not {feeling} any more.", f'"Now I am {after}," said {a.name}.')))
    if rng.random() < 0.3:
        lines.append(ending(rng, a.name, b.name))
    return " ".join(lines)


def shopping(rng):
    """A list, what was bought, and what became of it."""
    a, b = rng.sample(PEOPLE, 2)
    items = rng.sample(FRUIT + VEGETABLES, rng.randint(2, 4))
    amounts = {i: rng.randint(1, 9) for i in items}
    goods = [count(n, i) for i, n in amounts.items()]
    start, _ = opening(rng)
    lines = [f"{start} {a.name} went to the market.", f"{cap(a.he)} wanted to buy {join(goods)}."]
    if rng.random() < 0.4:
        lines = ["{}'s shopping list:\n{}\n".format(a.name, "\n".join("- " + g for g in goods)) + f"{a.name} went to the market with this list."]
    item = rng.choice(items)
    lines.append(rng.choice((f'"How many {plural(item)} do you want?" asked {b.name}. "{cap(number(amounts[item]))}, please," said {a.name}.',
                             f"{cap(a.he)} bought {join(goods)}.", f'"I need {join(goods)}," {a.he} said.',
                             f'"What do you need?" asked {b.name}. "{cap(join(goods))}," said {a.name}.')))
    eaten = rng.choice(items)
    n = rng.randint(1, amounts[eaten])
    left = amounts[eaten] - n
    lines.append(f"On the way home {a.he} ate {count(n, eaten)}." if rng.random() < 0.6 else f"{cap(a.he)} gave {count(n, eaten)} to {b.name}.")
    lines.append(f"So {a.name} had {'no ' + plural(eaten) if left == 0 else count(left, eaten)} left.")
    if rng.random() < 0.4:
        lines.append(f"{cap(a.his)} mother made {rng.choice(('soup', 'a pie', 'a salad'))} from the {plural(rng.choice(items))}.")
    return " ".join(lines)


def sums(rng):
    """Small sums with things."""
    a, b = rng.sample(PEOPLE, 2)
    noun = rng.choice(CARRY + FRUIT)
    x, y = rng.randint(1, 9), rng.randint(1, 9)
    many = plural(noun)
    if rng.random() < 0.5:
        lines = [f"{a.name} had {count(x, noun)}.", rng.choice((f"{b.name} gave {a.him} {number(y)} more.", f"Then {a.he} found {number(y)} more.", f"{cap(a.he)} bought {number(y)} more."))]
        total = x + y
    else:
        x, y = max(x, y), min(x, y)
        lines = [f"{a.name} had {count(x, noun)}.", rng.choice((f"{cap(a.he)} gave {number(y)} to {b.name}.", f"{cap(a.he)} lost {number(y)} of them.", f"{b.name} took {number(y)} of them."))]
        total = x - y
    result = number(total) if total else "no"
    lines.append(rng.choice((f"Now {a.he} had {result} {noun if total == 1 else many}.", f'"How many {many} do you have now?" asked {b.name}. "{cap(number(total))}," said {a.name}.',
                             f"How many {many} did {a.name} have then? {cap(number(total))}.")))
    return " ".join(lines)


def race(rng):
    """Order: a race with a first, a second, a last."""
    who = [p.name for p in rng.sample(PEOPLE, rng.randint(3, 5))]
    start, _ = opening(rng)
    place = rng.choice(sorted(TOWN))
    lines = [rng.choice((f"{start} {join(who)} ran a race to the {place}.", f"{start} there was a race. {join(who)} ran."))]
    order = rng.sample(who, len(who))
    lines += [f"{order[0]} was first." if rng.random() < 0.5 else f"{order[0]} won the race."]
    for i, name in enumerate(order[1:], 1):
        lines.append(rng.choice((f"{name} was {ORDINALS[i] if i < len(order) - 1 else 'last'}.", f"{'Then' if i < len(order) - 1 else 'At last'} came {name}.", f"{name} came after {order[i - 1]}.")))
    asked = rng.choice((("Who won?", order[0]), ("Who was first?", order[0]), ("Who was last?", order[-1]), ("Who was second?", order[1]),
                        (f"Who came after {order[0]}?", order[1]), (f"Who came before {order[1]}?", order[0])))
    lines.append(rng.choice((f'"{asked[0]}" asked the teacher. "{asked[1]}," they said.', f"{order[0]} was faster than {order[-1]}.",
                             f"The fastest was {order[0]} and the slowest was {order[-1]}.", f'"Well done, {order[0]}!" said {order[-1]}.')))
    return " ".join(lines)


def taller(rng):
    """Comparison of people, in a chain."""
    word, most, least, other = rng.choice((("taller", "tallest", "shortest", "shorter"), ("older", "oldest", "youngest", "younger"), ("stronger", "strongest", "weakest", "weaker"),
                                           ("faster", "fastest", "slowest", "slower"), ("richer", "richest", "poorest", "poorer")))
    a, b, c = (p.name for p in rng.sample(PEOPLE, 3))
    first, second = rng.choice((f"{a} is {word} than {b}.", f"{b} is {other} than {a}.")), rng.choice((f"{b} is {word} than {c}.", f"{c} is {other} than {b}."))
    return " ".join((first, second, rng.choice((f"So {a} is {word} than {c}.", f"So {a} is the {most} of the three.", f"So {c} is the {least}.", f'"Who is the {most}?" asked the teacher. "{a}," said {b}.',
                                                f'"Who is the {least}?" asked the teacher. "{c}," said {a}.', f"{a} is the {most} and {c} is the {least}."))))


def pet(rng):
    """A person and an animal with a name and a colour."""
    a, b = rng.sample(PEOPLE, 2)
    animal = rng.choice(ANIMALS[3:24])
    name = rng.choice([n.name for n in PEOPLE if n not in (a, b)]) if rng.random() < 0.2 else rng.choice("Spot Fluffy Bella Rex Coco Pip Daisy Star Lucky Bruno".split())
    colour = rng.choice(("black", "white", "brown", "grey"))
    start, _ = opening(rng)
    lines = [rng.choice((f"{a.name} had {an(colour)} {animal.name}. Its name was {name}.", f"{a.name} had {an(animal.name)} called {name}. {name} was {colour}.",
                         f"{start} {a.name} got {an(colour)} {animal.name}. {cap(a.he)} called it {name}."))]
    more = [f"{name} liked {animal.food}.", f"Every day {a.name} gave {name} some {animal.food}.", f"{name} lived {animal.home}.", f"{a.name} and {name} went to the {rng.choice(sorted(TOWN))}.",
            f"{b.name} liked {name} too.", f"{name} was {rng.choice(('fast', 'slow', 'clever', 'old', 'young', 'small', 'lazy', 'brave'))}."]
    if animal.sound:
        more += [f'"{cap(animal.sound)}!" said {name}.', f"{name} could {animal.sound} very loudly." if animal.sound in ("bark", "sing", "howl", "roar", "growl", "bleat", "squeak") else f'{name} said "{animal.sound}".']
    lines += rng.sample(more, rng.randint(1, 4))
    asked = [("What is its name?", name), ("What colour is it?", cap(colour)), (f"What is {name}?", cap(an(animal.name))), (f"Who has {an(animal.name)}?", a.name), (f"What does {name} eat?", cap(animal.food))]
    for q, answer in rng.sample(asked, rng.randint(0, 2)):
        lines.append(f'"{q}" asked {b.name}. "{answer}," said {a.name if answer != a.name else "Grandmother"}.')
    return " ".join(lines)


def work(rng):
    """A working day."""
    a, b = rng.sample(PEOPLE, 2)
    job = rng.choice(sorted(JOBS))
    place, _, did = JOBS[job]
    start, weather = opening(rng)
    lines = [f"{a.name} was {an(job)} and worked {place}.", rng.choice((f"{start} {a.he} {did}.", f"Every morning {a.he} {did}.", f"In the morning {a.he} {did}.")), rng.choice(WEATHER[weather]),
             rng.choice((f'"What is your work?" asked {b.name}. "I am {an(job)}," said {a.name}.', f"At noon {a.he} ate {rng.choice(DISHES)} and drank {rng.choice(DRINKS)}.",
                         f"{b.name} wanted to be {an(job)} too.", f'"Where do you work?" asked {b.name}. "{cap(place)}," said {a.name}.', f"In the evening {a.he} was tired and went home."))]
    return " ".join(lines)


def week(rng):
    """What happened on the days of a week, in their order."""
    a, b = rng.sample(PEOPLE, 2)
    first, n = rng.randint(0, 6), rng.randint(2, 4)
    acts = [f"went to the {p}" for p in rng.sample(sorted(TOWN), 6)] + [f"bought {an(t)}" for t in rng.sample(CARRY, 4)] + [f"ate {d}" for d in rng.sample(DISHES, 3)] + [f"visited {b.name}"]
    chosen = rng.sample(acts, n)
    lines, days = [], []
    for i, act in enumerate(chosen):
        day = DAYS[(first + i) % 7]
        days.append(day)
        lines.append(f"On {day} {a.name if i == 0 else a.he} {act}." if i == 0 or rng.random() < 0.6 else f"The next day was {day}, and {a.he} {act}.")
    i = rng.randrange(n)
    lines.append(rng.choice((f'"When was it that {a.name} {chosen[i]}?" "On {days[i]}."', f"Before {days[-1]} came {days[-2]}.", f"So it was on {days[i]} that {a.he} {chosen[i]}.")))
    return " ".join(lines)


def letter(rng):
    a, b = rng.sample(PEOPLE, 2)
    place = rng.choice(sorted(TOWN))
    thing = an(f"{rng.choice(COLOURS)} {rng.choice(CARRY)}")
    weather = rng.choice(sorted(WEATHER))
    body = [rng.choice((f"I am writing to you from the {place}.", f"How are you? I am {rng.choice(('well', 'happy', 'tired', 'at home'))}.", f"Thank you for the {rng.choice(CARRY)}.", f"Today it is {weather} here.")),
            rng.choice((f"Yesterday I found {thing} {PLACES[place]} the {place}.", f"I bought {thing} for you.", f"I have {thing} now.", f"On {rng.choice(DAYS)} I went to the {place}.")),
            rng.choice((f"Please come to me on {rng.choice(DAYS)}.", f"I hope to see you in {rng.choice(('spring', 'summer', 'autumn', 'winter'))}.", f"We will eat {rng.choice(DISHES)} together.", "Please write to me soon."))]
    return f"Dear {b.name},\n{' '.join(body)}\n{rng.choice(('Your friend', 'With love', 'Yours'))},\n{a.name}"


def meeting(rng):
    """A talk between two people about a plan, which is then carried out."""
    a, b = rng.sample(PEOPLE, 2)
    place, food, day = rng.choice(sorted(TOWN)), rng.choice(DISHES), rng.choice(DAYS)
    thing, container = rng.choice(CARRY), rng.choice(CONTAINERS)
    start, _ = opening(rng)
    plan, done = rng.choice(((f"go to the {place}", f"went to the {place}"), (f"eat some {food}", f"ate some {food}"), (f"look for the {thing}", f"looked for the {thing}"),
                             (f"open the {container}", f"opened the {container}"), (f"visit {a.name}'s grandmother", "visited the grandmother"), ("play a game", "played a game"), ("sing a song", "sang a song")))
    lines = [f"{start} {a.name} met {b.name}.", rng.choice(GREETINGS).format(a=a.name, b=b.name), rng.choice((f'"What do you want to do?" asked {b.name}. "I want to {plan}," said {a.name}.', f'"Let us {plan}," said {a.name}.',
             f'"Will you {plan} with me?" asked {a.name}.')), rng.choice((f'"Yes," said {b.name}. So they {done}.', f'"That is a good idea," said {b.name}, and they {done}.', f'"No, not today," said {b.name}. "Let us do it on {day}." So on {day} they {done}.'))]
    if rng.random() < 0.5:
        lines.append(ending(rng, a.name, b.name))
    return " ".join(lines)


STORIES = ((scene_story, 30), (short_scene, 24), (search, 9), (feelings, 12), (shopping, 7), (sums, 5), (race, 5), (taller, 3), (pet, 9), (work, 5), (week, 4),
           (letter, 5), (meeting, 9))
