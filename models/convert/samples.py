"""Texts with which the converter measures a model's activations.

Any varied prose works; it is fixed so that the conversion of a checkpoint is deterministic.
"""

SAMPLES = (
    "We decided to use PostgreSQL 16 for the billing service because it needs transactions and JSON columns.",
    "The deploy failed at 14:32 with a timeout after 30 s; a retry with a larger connection pool went through.",
    "I prefer short answers without bullet points, and please never rename files unless I ask for it.",
    "My sister Ana moved to Lisbon last March. She works in a bakery, plays the cello and has two cats.",
    "def load(path: Path) -> dict[str, int]:\n    with path.open() as file:\n        return json.load(file)",
    'Traceback (most recent call last):\n  File "app.py", line 12, in <module>\nValueError: invalid literal for int()',
    "What did we say about caching in the API gateway?",
    "Could you recommend a few books about the history of mathematics, ideally ones without too many formulas?",
    "The meeting on Tuesday moved to Thursday at half past nine; Priya brings the figures for the third quarter.",
    "SELECT name, count(*) FROM orders WHERE created_at > '2024-01-01' GROUP BY name HAVING count(*) > 3;",
    "Run `npm install`, then `npm run build`; the result lands in dist/ and must not be committed.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen, mostly in the leaves of plants.",
    "No.",
    "thanks, that worked!",
    "The user's dog is called Biscuit, is seven years old and allergic to chicken.",
    "Remember: tests that touch the network are marked slow and run only at night.",
    "He said that he had never been to Japan, but she remembered the photographs of Kyoto on his desk.",
    "Mix 250 g of flour with a pinch of salt, two eggs and half a litre of milk; let it rest for an hour.",
    "https://example.org/docs/v2/guide.html#install returned 404 after the move to the new site generator.",
    "Error: ENOSPC: no space left on device, write '/var/lib/docker/overlay2/6f3c/merged/tmp/build.log'",
    "The contract ends on 31 December 2026 and renews for twelve months unless either side gives notice in writing.",
    "Her favourite films are slow ones: long shots, little talk, rain on windows, trains that leave without anyone.",
    "git rebase --onto main feature~3 feature && git push --force-with-lease origin feature",
    "In 1969 two people walked on the Moon while a third circled above them, out of reach of any radio for half of "
    "every orbit. He wrote later that he had not felt lonely, only very far from everyone who had ever lived.",
    "Why is the sky blue?",
    "The cache key must contain the tenant, the locale and the schema version; otherwise a change of one shows another "
    "tenant's prices, which happened twice in May and cost us a weekend of refunds and apologies.",
    'class Queue(Generic[T]):\n    """A bounded queue; put() raises Full instead of waiting."""\n\n'
    "    def __init__(self, size: int) -> None:\n        self._items: deque[T] = deque(maxlen=size)\n",
    "Patients who took the drug slept forty minutes longer on average than those who did not (p < 0.01, n = 214).",
    "Buy milk, eggs, bread, two lemons, washing powder, stamps.",
    "Inflation fell to 2.4 percent in October, the lowest figure since the summer of 2021, the statistics office said.",
    '{"id": 4711, "status": "paid", "items": [{"sku": "A-17", "count": 2}], "total": 39.90, "currency": "EUR"}',
    "Als wir ankamen, war das Museum schon geschlossen, also gingen wir am Fluss entlang zurück zum Bahnhof.",
    "Nous avons décidé de garder l'ancienne version jusqu'à la fin du mois, puis de tout migrer en une nuit.",
    "El servidor de pruebas usa el puerto 8080; el de producción, el 443, y los dos comparten el mismo certificado.",
    "会議は来週の水曜日に変更になりました。資料は前日までに共有してください。",
    "Сборка падает на новой версии компилятора, поэтому мы закрепили старую до следующего выпуска.",
    "如果缓存中没有这个键，就从数据库读取，然后写回缓存，过期时间为十分钟。",
    "The agent tried three fixes: raising the memory limit, which only delayed the crash; turning off the JIT, which "
    "made it slower; and finally pinning the image library to the version before the last, which solved it. The lesson "
    "is to read the change log of a dependency before touching settings of the runtime.",
    "I usually wake up at six, run five kilometres along the canal, and start work at eight with a pot of green tea.",
    "Two plus two is four; the square root of 144 is 12; a prime has exactly two divisors; pi is about 3.14159.",
)
