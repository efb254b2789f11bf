"""The history of the field: what happened when, each event with its source.

``cite`` names one or more keys of the book's bibliography, with commas between them. Events
are in the order of their years.
"""

from typing import NamedTuple

from dlcore.checks import check


class Era(NamedTuple):
    """A stretch of history, both years included."""

    name: str
    first: int
    last: int


class Event(NamedTuple):
    """Something that happened, in two or three words and in a sentence."""

    year: int
    name: str
    what: str
    cite: str


ERAS = (
    Era("machines that calculate", 1600, 1939),
    Era("units", 1940, 1969),
    Era("networks that learn", 1970, 1989),
    Era("other learners", 1990, 2009),
    Era("deep networks", 2010, 2029),
)

TIMELINE = (
    Event(
        1623,
        "Schickard's calculator",
        "Schickard describes his calculating clock to Kepler.",
        "goldstine1972",
    ),
    Event(
        1642,
        "Pascal's calculator",
        "Pascal begins an adding machine; he presents it in 1645.",
        "pascal1645",
    ),
    Event(
        1837,
        "Babbage's Analytical Engine",
        "Babbage describes a machine that can be programmed. It is never finished.",
        "babbage1837",
    ),
    Event(
        1843,
        "Lovelace's notes",
        "Lovelace publishes a program for it; it cannot originate anything, she says.",
        "lovelace1843",
    ),
    Event(
        1943,
        "McCulloch–Pitts units",
        "Threshold units as a calculus of logic.",
        "mcculloch1943",
    ),
    Event(
        1948,
        "Intelligent Machinery",
        "Turing's report on machines that are taught, among them nets of simple units.",
        "turing1948",
    ),
    Event(
        1949,
        "Hebb's principle",
        "Connections grow between cells that are active together.",
        "hebb1949",
    ),
    Event(
        1950,
        "the imitation game",
        "Turing replaces “can machines think?” by a game that can be played.",
        "turing1950",
    ),
    Event(
        1955,
        "“artificial intelligence”",
        "The name first appears, in the proposal of a summer workshop.",
        "mccarthy1955",
    ),
    Event(
        1956,
        "Dartmouth workshop",
        "The workshop takes place.",
        "moor2006",
    ),
    Event(
        1958,
        "the perceptron",
        "Rosenblatt's network with units that learn; a program on an IBM 704.",
        "rosenblatt1958",
    ),
    Event(
        1960,
        "Mark I Perceptron",
        "The same as a machine, with an eye of 20 × 20 photocells.",
        "hay1960",
    ),
    Event(
        1960,
        "ADALINE",
        "Widrow and Hoff train a linear unit by least mean squares.",
        "widrow1960",
    ),
    Event(
        1969,
        "Perceptrons, the book",
        "Minsky and Papert prove what one layer cannot compute.",
        "minsky1969",
    ),
    Event(
        1970,
        "reverse-mode derivatives",
        "Linnainmaa differentiates a program backwards, in his thesis.",
        "linnainmaa1970",
    ),
    Event(
        1973,
        "Lighthill's report",
        "A hard verdict on the field, followed by years with little money.",
        "lighthill1973",
    ),
    Event(
        1974,
        "Werbos' thesis",
        "Proposes reverse derivatives for fitting models, among them networks.",
        "werbos1974",
    ),
    Event(
        1980,
        "neocognitron",
        "Fukushima's layers of local units that share their weights.",
        "fukushima1980",
    ),
    Event(
        1982,
        "Hopfield network",
        "A network that remembers, described by an energy.",
        "hopfield1982",
    ),
    Event(
        1985,
        "Boltzmann machine",
        "Hidden stochastic units, with a rule by which they learn.",
        "ackley1985",
    ),
    Event(
        1986,
        "back-propagation",
        "Rumelhart, Hinton and Williams make it known: hidden units learn.",
        "rumelhart1986",
    ),
    Event(
        1989,
        "convolutional networks",
        "LeCun's network reads postal codes; trained by back-propagation.",
        "lecun1989",
    ),
    Event(
        1992,
        "kernels and margins",
        "The support vector machine; with slack variables in 1995.",
        "boser1992,cortes1995",
    ),
    Event(
        1997,
        "LSTM",
        "A recurrent unit that remembers over long times.",
        "hochreiter1997",
    ),
    Event(
        1997,
        "AdaBoost",
        "Many weak rules, weighted into a strong one; first presented in 1995.",
        "freund1997",
    ),
    Event(
        1997,
        "Deep Blue",
        "Beats Kasparov by search: 100 to 200 million positions a second.",
        "campbell2002",
    ),
    Event(
        2001,
        "random forests",
        "Many decision trees that vote.",
        "breiman2001",
    ),
    Event(
        2009,
        "ImageNet",
        "Images by the million, labelled by hand.",
        "deng2009",
    ),
    Event(
        2012,
        "AlexNet",
        "A deep network trained on two graphics cards wins on ImageNet.",
        "krizhevsky2012",
    ),
    Event(
        2014,
        "adversarial networks",
        "Two networks that train each other: one forges, one judges.",
        "goodfellow2014",
    ),
    Event(
        2015,
        "deep Q-network",
        "Learns Atari games from pixels and score.",
        "mnih2015",
    ),
    Event(
        2016,
        "AlphaGo",
        "Networks and tree search beat a European champion at Go.",
        "silver2016",
    ),
    Event(
        2016,
        "PyTorch",
        "First versions; public in January 2017, described in 2019.",
        "paszke2019",
    ),
    Event(
        2017,
        "the transformer",
        "Attention without recurrence.",
        "vaswani2017",
    ),
    Event(
        2018,
        "Turing award",
        "Bengio, Hinton, LeCun. Announced in March 2019.",
        "acm2019",
    ),
    Event(
        2021,
        "CLIP and DALL·E",
        "Images and text in one model.",
        "radford2021,ramesh2021",
    ),
    Event(
        2021,
        "AlphaFold 2",
        "Predicts the shape of proteins from their sequence.",
        "jumper2021",
    ),
    Event(
        2022,
        "ChatGPT",
        "A language model to talk with, open to everyone.",
        "openai2022",
    ),
    Event(
        2023,
        "GPT-4",
        "A report with results, without size or method.",
        "openai2023",
    ),
    Event(
        2023,
        "LLaMA",
        "Weights go out to researchers; open models follow.",
        "touvron2023",
    ),
    Event(
        2024,
        "Nobel prizes",
        "Physics: Hopfield, Hinton. Chemistry: Baker, Hassabis, Jumper.",
        "nobel2024physics,nobel2024chemistry",
    ),
)


def era(year: int) -> Era:
    """Return the era that a year belongs to."""
    first, last = ERAS[0].first, ERAS[-1].last
    check(first <= year <= last, "era: year", f"lie in {first}..{last}", year)
    return next(e for e in ERAS if year <= e.last)
