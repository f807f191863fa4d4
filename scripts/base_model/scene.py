# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene: where people are, what they have, what each container holds. Events change it and are described in varied words.

Every sentence is true in the scene at its moment, so a story never contradicts itself. `facts()` generates questions about
the scene, for the dialogues of the corpus and for the instruction set.
"""
from dataclasses import dataclass

from world import CARRY, COLOURS, CONTAINERS, PEOPLE, PLACES, ROOMS, an, cap, join, number


@dataclass(frozen=True)
class Fact:
    kind: str
    question: str
    short: str      # the answer in a few words
    full: str       # the answer as a sentence


class Scene:
    def __init__(self, rng, people=(2, 3), things=(1, 3), places=3, home=None):
        self.rng = rng
        self.people = rng.sample(PEOPLE, rng.randint(*people))
        self.places = rng.sample(sorted(ROOMS if home or rng.random() < 0.5 else PLACES), places)
        self.colour = {}
        colours = rng.sample(COLOURS, 6)
        for i, thing in enumerate(rng.sample(CARRY, rng.randint(*things))):
            self.colour[thing] = colours[i]
        self.where = {p.name: None for p in self.people}      # place, once it has been mentioned
        self.holder = {}                                      # thing -> person's name
        self.lies = {}                                        # thing -> place
        self.inside = {}                                      # thing -> container
        self.last = None                                      # subject of the last sentence, for pronouns

    # --- words -------------------------------------------------------------------------------------------------
    def pick(self, *options):
        return self.rng.choice(options)

    def at(self, place):
        return f"{PLACES[place]} the {place}"

    def the(self, thing):
        return f"the {self.colour[thing]} {thing}" if self.rng.random() < 0.6 else f"the {thing}"

    def a(self, thing):
        return an(f"{self.colour[thing]} {thing}")

    def subject(self, person):
        """The name, or the pronoun when the last sentence was about the same person."""
        if self.last == person and self.rng.random() < 0.6:
            return cap(person.he)
        self.last = person
        return person.name

    def carried(self, person):
        return [t for t, name in self.holder.items() if name == person.name]

    # --- events: each returns one sentence, or None when it cannot happen now -----------------------------------
    def introduce(self, thing, person):
        self.holder[thing] = person.name
        s, t = self.subject(person), self.a(thing)
        return self.pick(f"{s} had {t}.", f"{s} found {t}.", f"{s} bought {t}.", f"{s} got {t} for {person.his} birthday.",
                         f"{s} was holding {t}.", f"{s} had {t} and liked it very much.")

    def go(self, person):
        place = self.rng.choice([p for p in self.places if p != self.where[person.name]])
        first = self.where[person.name] is None
        self.where[person.name] = place
        s = self.subject(person)
        told = [f"{s} went to the {place}.", f"{s} walked to the {place}.", f"{s} ran to the {place}.",
                f"Then {s if s == person.name else person.he} went to the {place}.", f"{s} hurried to the {place}."]
        if first:
            told += [f"{s} was {self.at(place)}.", f"{s} was {self.at(place)} in the morning."]
        else:
            told += [f"After that {s if s == person.name else person.he} went to the {place}.",
                     f"Later {s if s == person.name else person.he} moved to the {place}."]
        return self.rng.choice(told)

    def together(self, a, b):
        return self.where[a.name] == self.where[b.name]

    def give(self, person):
        things = self.carried(person)
        others = [p for p in self.people if p != person and self.together(p, person)]
        if not things or not others:
            return None
        thing, other = self.rng.choice(things), self.rng.choice(others)
        self.holder[thing] = other.name
        s, t = self.subject(person), self.the(thing)
        self.last = None
        return self.pick(f"{s} gave {t} to {other.name}.", f"{s} gave {other.name} {t}.", f"{s} handed {t} to {other.name}.",
                         f"{s} passed {t} to {other.name}.", f"{other.name} got {t} from {person.name}.",
                         f"{other.name} took {t} from {person.name}.")

    def swap(self, person):
        others = [p for p in self.people if p != person and self.together(p, person) and self.carried(p)]
        mine = self.carried(person)
        if not mine or not others:
            return None
        other = self.rng.choice(others)
        a, b = self.rng.choice(mine), self.rng.choice(self.carried(other))
        self.holder[a], self.holder[b] = other.name, person.name
        self.last = None
        return self.pick(f"{person.name} and {other.name} swapped, so now {person.name} had {self.the(b)} and {other.name} had {self.the(a)}.",
                         f"{person.name} gave {self.the(a)} to {other.name} and got {self.the(b)} for it.")

    def put(self, person):
        things = self.carried(person)
        free = [c for c in CONTAINERS if c not in self.inside.values()]
        if not things or not free:
            return None
        thing, container = self.rng.choice(things), self.rng.choice(free)
        del self.holder[thing]
        self.inside[thing] = container
        s, t = self.subject(person), self.the(thing)
        return self.pick(f"{s} put {t} in the {container}.", f"{s} hid {t} in the {container}.", f"{s} laid {t} into the {container}.",
                         f"{s} kept {t} in the {container}.")

    def drop(self, person):
        things, place = self.carried(person), self.where[person.name]
        if not things or not place:
            return None
        thing = self.rng.choice(things)
        del self.holder[thing]
        self.lies[thing] = place
        s, t = self.subject(person), self.the(thing)
        return self.pick(f"{s} left {t} {self.at(place)}.", f"{s} lost {t} {self.at(place)}.", f"{s} dropped {t} {self.at(place)}.",
                         f"{s} forgot {t} {self.at(place)}.")

    def take(self, person):
        place = self.where[person.name]
        here = [t for t, p in self.lies.items() if p == place]
        if not place or not here:
            return None
        thing = self.rng.choice(here)
        del self.lies[thing]
        self.holder[thing] = person.name
        s, t = self.subject(person), self.the(thing)
        return self.pick(f"{s} picked up {t}.", f"{s} took {t}.", f"{s} found {t} there and took it.", f"{s} saw {t} there and picked it up.")

    def fetch(self, person):
        if not self.inside:
            return None
        thing = self.rng.choice(sorted(self.inside))
        container = self.inside.pop(thing)
        self.holder[thing] = person.name
        s, t = self.subject(person), self.the(thing)
        return self.pick(f"{s} took {t} out of the {container}.", f"{s} opened the {container} and found {t}.",
                         f"{s} looked into the {container} and took out {t}.")

    def travel(self, person):
        """Moves with the things that the person carries, in one sentence."""
        things = self.carried(person)
        if not things:
            return None
        thing = self.rng.choice(things)
        place = self.rng.choice([p for p in self.places if p != self.where[person.name]])
        self.where[person.name] = place
        s, t = self.subject(person), self.the(thing)
        return self.pick(f"{s} took {t} to the {place}.", f"{s} carried {t} to the {place}.", f"{s} went to the {place} with {t}.",
                         f"{s} brought {t} to the {place}.")

    def happen(self, kinds):
        """One event of a random kind by a random person that can happen now."""
        for _ in range(20):
            told = getattr(self, self.rng.choice(kinds))(self.rng.choice(self.people))
            if told:
                return told
        return self.go(self.rng.choice(self.people))

    # --- current facts -------------------------------------------------------------------------------------------
    def facts(self):
        out = []
        for thing, name in sorted(self.holder.items()):
            c = self.colour[thing]
            out += [Fact("who", f"Who has the {thing}?", name, f"{name} has the {thing}."),
                    Fact("who", f"Who has the {c} {thing}?", name, f"{name} has the {c} {thing}."),
                    Fact("colour", f"What colour is the {thing}?", cap(c), f"The {thing} is {c}.")]
            if self.where[name]:
                place = self.at(self.where[name])
                out.append(Fact("thing_place", f"Where is the {thing}?", cap(place), f"The {thing} is {place}."))
        for thing, container in sorted(self.inside.items()):
            out += [Fact("inside", f"Where is the {thing}?", f"In the {container}", f"The {thing} is in the {container}."),
                    Fact("content", f"What is in the {container}?", f"The {self.colour[thing]} {thing}",
                         f"The {self.colour[thing]} {thing} is in the {container}."),
                    Fact("colour", f"What colour is the {thing}?", cap(self.colour[thing]), f"The {thing} is {self.colour[thing]}.")]
        for thing, place in sorted(self.lies.items()):
            place = self.at(place)
            out.append(Fact("thing_place", f"Where is the {thing}?", cap(place), f"The {thing} is {place}."))
        for p in self.people:
            have = self.carried(p)
            if len(have) == 1:
                thing = f"{self.colour[have[0]]} {have[0]}"
                out.append(Fact("has", f"What does {p.name} have?", f"The {thing}", f"{p.name} has the {thing}."))
            if self.where[p.name]:
                place = self.at(self.where[p.name])
                out.append(Fact("where", f"Where is {p.name}?", cap(place), f"{p.name} is {place}."))
        return out

    def yes_no(self):
        """Questions that are answered with Yes or No, equally often."""
        out = []
        for thing, name in sorted(self.holder.items()):
            for p in self.people:
                yes = p.name == name
                if yes or self.rng.random() < 0.6:
                    out.append(Fact("yes_no", f"Does {p.name} have the {thing}?", "Yes" if yes else "No",
                                    f"Yes, {name} has the {thing}." if yes else f"No, {name} has the {thing}."))
        for p in self.people:
            here = self.where[p.name]
            if here:
                asked = here if self.rng.random() < 0.5 else self.rng.choice(self.places)
                yes = asked == here
                out.append(Fact("yes_no", f"Is {p.name} {self.at(asked)}?", "Yes" if yes else "No",
                                f"Yes, {p.name} is {self.at(here)}." if yes else f"No, {p.name} is {self.at(here)}."))
        return out

    def recall(self):
        """A sentence that repeats a fact in past tense."""
        said = []
        for thing, name in sorted(self.holder.items()):
            said += [f"Now {name} had {self.the(thing)}.", f"So {self.the(thing)} was with {name}.", f"{cap(self.the(thing))} now belonged to {name}."]
        for thing, container in sorted(self.inside.items()):
            said += [f"{cap(self.the(thing))} was in the {container}.", f"In the {container} there was {self.a(thing)}."]
        for thing, place in sorted(self.lies.items()):
            said += [f"{cap(self.the(thing))} was still {self.at(place)}.", f"It was {self.at(place)} that {self.the(thing)} lay."]
        for p in self.people:
            if self.where[p.name]:
                said += [f"Now {p.name} was {self.at(self.where[p.name])}."]
            if len(self.carried(p)) > 1:
                said.append(f"Now {p.name} had {join(self.the(t) for t in self.carried(p))}.")
                said.append(f"Now {p.name} had {number(len(self.carried(p)))} things.")
        self.last = None
        return self.rng.choice(said) if said else None


HOLD = ("give", "give", "give", "swap")
MOVE = ("go", "go", "travel", "drop", "take", "give")
HIDE = ("put", "put", "fetch", "give")
FLAVOURS = {"hold": HOLD, "move": MOVE, "hide": HIDE}


def make_scene(rng, flavour, events, people=(2, 3), things=(1, 3), recall=0.25):
    """A scene after some events, and its sentences."""
    scene = Scene(rng, people, things)
    told = []
    if flavour == "move":
        for p in scene.people:
            told.append(scene.go(p))
    for thing in scene.colour:
        told.append(scene.introduce(thing, rng.choice(scene.people)))
    for _ in range(events):
        told.append(scene.happen(FLAVOURS[flavour]))
        if rng.random() < recall:
            told.append(scene.recall())
    return scene, [t for t in told if t]
