"""English word tables for `wording` and `agreement`: what may be read as the same, and what must be looked at twice.

A row in a table of equals is a promise that swapping one for the other never changes a fact. When in doubt leave it
out: two memories that say the same are harmless, one that was overwritten is lost. There is no table of opposites:
any word without an equal in the other text disagrees.
"""


def words(text: str) -> frozenset[str]:
    """Read words separated by white space."""
    return frozenset(text.split())


def _numbered(text: str, first: int) -> dict[int, str]:
    return dict(enumerate(text.split(), first))


def _groups(text: str) -> dict[str, str]:
    """Read lines of equals; every word of a line means its first one."""
    lines = (line.split() for line in text.strip().splitlines())
    return {word: equals[0] for equals in lines for word in equals}


def _phrases(text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Read lines `phrase = phrase`; the left one is read as the right one, - is nothing."""
    sides = (line.split(" = ") for line in text.strip().splitlines())
    return {tuple(left.split()): tuple(right.replace("-", "").split()) for left, right in sides}


# One of these in either text tells that English rules apply; none is a common word of another language.
ENGLISH = words(
    """
the is are and with for from of to every each after before during until without when unless never always only we you
she then there hours hour days day minutes seconds must should not does doesn't don't my our your his her their uses
use at by it its please pm i'm he she takes prefers prefer likes like owns runs has have will can be this that they
user users
"""
)

# Left out of the comparison, like articles. None limits what is said: not "just", "only", "now", "really", "mostly".
DROPPED = frozenset(["please", "kindly", "also", "currently", "presently", "actually", "basically"])

PRODUCTS = _groups(
    """
postgres postgresql
kubernetes k8s
javascript js
typescript ts
"""
)

# Not for names: Grey is not Gray.
SAME = PRODUCTS | _groups(
    """
be is are am
have has
do does
use utilize
config configuration
db database
repo repository
app application
docs documentation
env environment
prod production
dev development
admin administrator
info information
email e-mail
param parameter
dir directory
max maximum
min minimum
approximately approx roughly
begin start commence
need require
buy purchase
large big
every each
with w/
without w/o
mom mother mum
dad father
person people
child children
colleague coworker
center centre
license licence
gray grey
favorite favourite
theater theatre
canceled cancelled
labeled labelled
traveling travelling
enrollment enrolment
judgment judgement
okay ok
"""
)

# Frequent misspellings that are no words.
MISSPELT = _groups(
    """
receive recieve
separate seperate
environment enviroment
definitely definately
database databse
occurred occured
necessary neccessary
deployment deployement deploymnet
tomorrow tommorow tommorrow tomorow
address adress
schedule schedual
available availible avaliable
preferred prefered
password pasword
"""
)

# Read after single words, longest first.
PHRASES = _phrases(
    """
do not = not
have to = must
need to = must
must never = must not
be called = be named
be required to = must
be going to = will
in order to = to
prior to = before
'd like = would like
'd love = would love
'd prefer = would prefer
'd rather = would rather
e mail = email
e mails = email
data base = db
time zone = timezone
time stamp = timestamp
code base = codebase
web site = website
user name = username
file name = filename
end point = endpoint
back end = backend
front end = frontend
pull request = pr
pull requests = pr
for example = e.g
at min = at least
min of = at least
max of = at most
no more than = at most
not more than = at most
no less than = at least
no fewer than = at least
not less than = at least
be located in = be in
on every = every
on daily basis = every day
right now = -
at moment = -
note that = -
remember that = -
keep in mind that = -
"""
)

# What follows one of these, perhaps behind "is", may be a name of which no other form is meant.
NAMED = words(
    """
called named table column bucket queue topic branch tag label field variable command channel package module library
namespace schema host hostname role group flag key repo repository endpoint route path file folder username login
password passphrase handle slug code id alias nickname domain
"""
)
PERIODS = words("second minute hour day night week month quarter year")
FREQUENCIES = {
    "hourly": "hour",
    "daily": "day",
    "nightly": "night",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
}

# Words that end in s and mean something else without it, or are no plural at all.
NOT_PLURAL = words(
    """
always news customs goods means https sometimes savings species series odds outdoors indoors besides perhaps whereas
canvas alias bias atlas pandas rails windows lens dues vitals arms glasses requests ours yours theirs hers adams
williams roberts peters stevens richards andrews edwards daniels michaels phillips matthews jacobs johns rogers
myers waters brooks parks woods banks wells mills fields rivers carlos marcos lucas nicolas jonas elias tobias
thomas andreas johannes miles james charles hughes kubernetes jenkins texas
"""
)

# What people also write with a capital; then it is something else.
CAPITALS = words("may march will bill mark polish")
ALL_CAPITALS = words("us it who or in me am may")

NEGATIONS = words("not no never none neither nor without nothing nobody cannot")

# A full stop or comma behind one of these separates it from what follows: "no, deploys" is not "no deploys".
COMMANDS = NEGATIONS | words("yes stop wait pause quit avoid cancel hold")

_TO_TWELVE = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = _numbered(_TO_TWELVE, 1)
_TO_NINETEEN = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
SMALL_NUMBERS = {word: number for number, word in _numbered(_TO_NINETEEN, 0).items()}
_TENS = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2)
TENS = {word: 10 * number for number, word in _TENS.items()}
MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}

_MONTHS = """january february march april may june july august september october november december
    jan feb mar apr may jun jul aug sep oct nov dec"""
MONTHS = {word: (number - 1) % 12 + 1 for number, word in _numbered(_MONTHS, 1).items()} | {"sept": 9}
WEEKDAYS = words("monday tuesday wednesday thursday friday saturday sunday weekday weekend")
SHORT_WEEKDAYS = _groups("monday mon\ntuesday tue tues\nwednesday wed\nthursday thu thur thurs\nfriday fri")

# In seconds; a unit of the other table equals only itself.
DURATIONS = {
    unit: seconds
    for units, seconds in (
        ("ms msec msecs millisecond milliseconds", "0.001"),
        ("s sec secs second seconds", "1"),
        ("min mins minute minutes", "60"),
        ("h hr hrs hour hours", "3600"),
        ("day days", "86400"),
        ("week weeks wk wks", "604800"),
    )
    for unit in units.split()
}
UNITS = _groups(
    """
month months
year years yr yrs
% percent
B byte bytes
KB kilobyte kilobytes
MB mb megabyte megabytes
GB gb gigabyte gigabytes
TB tb terabyte terabytes
MiB mebibyte mebibytes
GiB gibibyte gibibytes
km kilometer kilometers kilometre kilometres
cm centimeter centimeters centimetre centimetres
mm millimeter millimeters millimetre millimetres
kg kilogram kilograms kilo kilos
g gram grams
mg milligram milligrams
lb lbs
°C celsius
°F fahrenheit
Hz hertz
USD $ dollar dollars usd
EUR € euro euros eur
GBP £ gbp
"""
)

# A phrase that begins with one of these may stand before or behind its sentence …
HEADS = words("in on at during for with after before when if every today tomorrow yesterday tonight")
# … if one of these, an article, a name or a comma shows where the sentence begins, …
SUBJECTS = words("i we you he she they it my our your his her their this that these those no all not never there")
# … unless the rest has one of these: then it might belong to another part of it.
ANCHORS = words(
    """
and or but while whereas then because since so if when after before until till unless except only than that who
which whose where just even instead rather though although as to-do ask tell want plan promise agree decide remind
try hope expect say said think know believe claim announce request propose suggest insist asked told wanted planned
promised agreed decided reminded tried hoped expected thought knew believed claimed announced requested proposed let
make help like love hate prefer wish need learn forget remember
"""
)

# With one of these it matters who of "Alice and Bob" comes first.
ORDERS = words("order rotation sequence priority respectively first second last primary secondary backup former latter")

# Adjacent letters swapped give another word.
REAL_SWAPS = words(
    """
compiled compiles compiling complied complies complying retired retires retried retries perfect perfects prefect
prefects complaint complaints compliant casually causally marital martial infarction infarctions infraction
infractions barking braking carving carvings craving cravings signing singing signers singers minuets minutes
dairies diaries farming framing farmers framers trailing trialing trailed trialed parting prating carting crating
belated bleated concerted concreted cervices crevices solitaires solitaries repertoires repertories gilding gliding
salting slating silvers slivers tilting titling satined stained thickest thickset garters graters timbers timbres
conversation conservation shrieks shrikes silvering slivering silvered slivered gustier gutsier reserve reverse
lattices latices
"""
)
