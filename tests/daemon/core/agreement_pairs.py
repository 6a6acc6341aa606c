"""Pairs of texts as people and agents write them: look-alikes that disagree, and rephrasings that do not."""

_LOOK_ALIKES = """
# versions, ports and numbers
We use PostgreSQL 14 | We use PostgreSQL 15
The API runs on Python 3.10 | The API runs on Python 3.1
The API runs on Python 3.11 | The API runs on Python 3.12
The service listens on port 8080 | The service listens on port 8081
The client needs version v1.2.3 | The client needs version v1.2.30
The cluster has 3 nodes | The cluster has 5 nodes
The cluster has three nodes | The cluster has four nodes
The redis instance is at 10.0.0.5 | The redis instance is at 10.0.0.6
The ticket is PROJ-1234 | The ticket is PROJ-1243
The fix is in commit a1b2c3d | The fix is in commit a1b2c4d
The rate limit is 1,000 requests per minute | The rate limit is 10,000 requests per minute
The error rate must stay under 1% | The error rate must stay under 10%
The error rate must stay under 0.5% | The error rate must stay under 5%
The budget for the offsite is $5,000 | The budget for the offsite is €5,000
The budget for the offsite is $5,000 | The budget for the offsite is $50,000
The door code is 4711 | The door code is 4117
# units
The timeout is 30 seconds | The timeout is 60 seconds
The timeout is 30 seconds | The timeout is 30 minutes
The timeout is 30 ms | The timeout is 30 s
Uploads are limited to 5 MB | Uploads are limited to 5 GB
Sessions expire after 7 days | Sessions expire after 7 weeks
The link gives 100 Mb per second | The link gives 100 MB per second
Logs are kept for 30 days | Logs are kept for 30 hours
The parcel weighs 2 kg | The parcel weighs 2 lb
The deadline is in 2 days | The deadline is in 2 business days
# dates and times
The release is on March 5 | The release is on March 6
The release is on March 5, 2026 | The release is on March 5, 2027
The release is on March 5 | The release is on May 5
The standup is at 9:30 am | The standup is at 9:30 pm
The standup is at 9:30 | The standup is at 10:30
The meeting with Dana is on Tuesday at 3 pm | The meeting with Dana is on Thursday at 3 pm
The meeting is at 15:00 UTC | The meeting is at 15:00 CET
The retro is every Friday | The retro is every second Friday
The invoice is due on 2026-03-01 | The invoice is due on 2026-01-03
The backup runs daily | The backup runs weekly
The report is sent every morning | The report is sent every evening
The certificate expires in January | The certificate expires in June
The gym is open Monday to Friday | The gym is open Monday, Friday
The freeze starts before the release | The freeze starts after the release
The freeze lasts until Friday | The freeze lasts since Friday
The call is today | The call is tomorrow
# negation
Deploying on Fridays is allowed | Deploying on Fridays is not allowed
Deploys on Friday are allowed | Deploys on Friday aren't allowed
The user likes dark mode | The user does not like dark mode
The user can access the billing page | The user cannot access the billing page
We never deploy on Fridays | We always deploy on Fridays
The tests run with network access | The tests run without network access
Alice is allergic to peanuts | Alice is not allergic to peanuts
The service is healthy | The service is unhealthy
The response is cacheable | The response is uncacheable
The feature is enabled | The feature is disabled
The feature is supported | The feature is unsupported
We no longer use Jenkins | We use Jenkins
The migration is reversible | The migration is irreversible
Deploy to staging | Do not deploy to staging
There are backups of the old cluster | There are no backups of the old cluster
No, deploys on Friday are fine | No deploys on Friday are fine
The token does expire | The token doesn't expire
Use tabs, not spaces | Use spaces, not tabs
Don't wait, deploy | Wait, don't deploy
Pardon impossible, to be executed | Pardon, impossible to be executed
# quantifiers, modality and scope
All services use TLS | Some services use TLS
All services use TLS | Most services use TLS
All tests pass | No tests pass
Every pull request needs a review | Any pull request needs a review
At least two reviewers must approve | At most two reviewers must approve
At least two reviewers must approve | Two reviewers must approve
Reviewers must approve the change | Reviewers should approve the change
Users may delete their account | Users must delete their account
The job usually takes an hour | The job rarely takes an hour
Both replicas are in sync | Either replica is in sync
A few users complained | Few users complained
Admins can delete projects | Only admins can delete projects
Only admins can delete projects | Admins can only delete projects
Everyone can push except interns | Everyone can push including interns
The API is public | The API is public except for billing
Deploy on green builds | Deploy unless builds are green
The first retry is immediate | The last retry is immediate
The limit is more than 10 users | The limit is less than 10 users
We don't have to encrypt backups | We must not encrypt backups
On Fridays we deploy | Only on Fridays we deploy
# opposites
The firewall allows outbound traffic | The firewall denies outbound traffic
The firewall allows inbound traffic | The firewall allows outbound traffic
Debug logging is on in production | Debug logging is off in production
The flag must be true | The flag must be false
Increase the pool size | Decrease the pool size
The minimum password length is 12 | The maximum password length is 12
The repository is public | The repository is private
The client is synchronous | The client is asynchronous
The script exports the data | The script imports the data
The proxy encrypts the payload | The proxy decrypts the payload
The new office is in the north of Berlin | The new office is in the south of Berlin
Turn left at the station | Turn right at the station
The review was accepted | The review was rejected
The deploy succeeded | The deploy failed
Upgrade the driver | Downgrade the driver
The user wants hot coffee | The user wants cold coffee
The old API is stable | The new API is stable
The status light is green | The status light is red
The user dislikes long answers | The user likes long answers
The job starts at midnight | The job stops at midnight
# names, owners and environments
Alice owns the billing service | Bob owns the billing service
Alice owns the billing service | Alice and Bob own the billing service
Dr. Meyer is my dentist | Dr. Mayer is my dentist
The user's sister lives in Paris | The user's brother lives in Paris
The user lives in Berlin | The user lives in Bern
Stefan works on search | Stefanie works on search
Adams reviews the contracts | Adam reviews the contracts
Carlos is the on-call engineer | Carlo is the on-call engineer
The data is stored in us-east-1 | The data is stored in us-west-1
The setting is called max_retries | The setting is called max_retry
The config file is /etc/app/config.yaml | The config file is /etc/app/config.yml
The handler is getUser | The handler is getUsers
The docs are at https://docs.example.com/v1 | The docs are at https://docs.example.com/v2
Mail invoices to billing@example.com | Mail invoices to billing@example.org
The staging database is db-01 | The production database is db-01
The endpoint uses http | The endpoint uses https
The backend is written in Java | The backend is written in JavaScript
The branch is called main | The branch is called master
The bug is in the parser | The bug is in the lexer
The user's favourite colour is blue | The user's favourite colour is green
The team uses Slack | The team uses Teams
Ship it to us | Ship it to the US
Plan A is approved | Plan B is approved
The user is allergic to peanuts | The user is allergic to walnuts
Protection is on for the main branch | Production is on for the main branch
The records were deleted | The records were depleted
The service was restarted | The service was restated
The causal model is the default | The casual model is the default
The complaint form is online | The compliant form is online
# roles and order
Alice manages Bob | Bob manages Alice
Alice reports to Bob | Bob reports to Alice
The client calls the server | The server calls the client
We migrate from MySQL to Postgres | We migrate from Postgres to MySQL
The user prefers REST over GraphQL | The user prefers GraphQL over REST
The billing service depends on the auth service | The auth service depends on the billing service
The tests run before the build | The build runs before the tests
Tabs are better than spaces | Spaces are better than tabs
The frontend uses React and the backend uses Vue | The frontend uses Vue and the backend uses React
The primary is Alice and the backup is Bob | The primary is Bob and the backup is Alice
The flight goes from Rome to Oslo | The flight goes from Oslo to Rome
Bob's manager is Alice | Alice's manager is Bob
HTTP and HTTPS are on ports 80 and 443 | HTTP and HTTPS are on ports 443 and 80
On Friday we deploy, on Monday we freeze | We deploy on Monday, we freeze on Friday
All managers are engineers | All engineers are managers
On Monday Bob asked Alice to call | Bob asked Alice to call on Monday
We do not deploy every Friday | Every Friday we do not deploy
# tense, person and questions
We use Redis for caching | We used Redis for caching
We use Redis for caching | We will use Redis for caching
We use Redis for caching | We used to use Redis for caching
We use Redis for caching | We could use Redis for caching
Alice has lived in Berlin | Alice lived in Berlin
Alice is the owner of billing | Alice was the owner of billing
The server is down | Is the server down?
The server is down | The server is down?
I prefer short answers | You prefer short answers
My flight is at noon | Your flight is at noon
He is the owner of the account | She is the owner of the account
Alice was promoted | Alice promoted
# details that change the fact
The API is deprecated and unstable | The API is unstable
Backups run every night | Backups run every night in staging
The office is closed | The office is temporarily closed
The user eats meat | The user eats meat only on Sundays
The build is broken | The building is broken
The user has a news feed | The user has a new feed
The limit applies to users | The limit applies to free users
The server needs 16 GB of memory | The server needs 16 GB of free memory
The threshold is x < 5 | The threshold is x > 5
The temperature is 5 °C | The temperature is -5 °C
Use C for the driver | Use C++ for the driver
"""

_REPHRASINGS = """
# articles, punctuation, case
The user prefers dark mode. | User prefers dark mode
The user prefers dark mode | The user prefers dark-mode.
We use PostgreSQL 14 in production | We use PostgreSQL 14 in production!
The staging cluster has three nodes. | The staging cluster has 3 nodes
The repo is hosted on GitHub | The repo is hosted on Github.
Deploys need two approvals, and a green build. | Deploys need two approvals and a green build
The config file is `settings.toml` | The config file is "settings.toml"
Use tabs, not spaces | Use tabs not spaces.
The API (v2) is stable | The API v2 is stable
The user lives in Berlin, Germany | The user lives in Berlin Germany
# contractions
The user doesn't like coffee | The user does not like coffee
You can't deploy on Fridays | You cannot deploy on Fridays
It's the default branch for releases | It is the default branch for releases
We don't use Jenkins | We do not use Jenkins
I'm allergic to peanuts | I am allergic to peanuts
They're moving to Berlin | They are moving to Berlin
The tests aren't stable | The tests are not stable
We'll migrate to Postgres | We will migrate to Postgres
# numbers, units, dates, times
The timeout is 30 s | The timeout is 30 seconds
The timeout is 30s | The timeout is thirty seconds
The timeout is 60 seconds | The timeout is 1 minute
The rate limit is 1,000 requests per minute | The rate limit is 1000 requests per minute
The cache holds 5 GB | The cache holds 5GB
Sessions expire after 24 hours | Sessions expire after 1 day
The error budget is 5 percent | The error budget is 5%
The release is on March 5, 2026 | The release is on 2026-03-05
The release is on March 5 | The release is on 5 March
The release is on 5th of March | The release is on Mar 5
The meeting is at 3 pm | The meeting is at 15:00
The standup is at 9:30 am | The standup is at 09:30
The standup is at 9:30 a.m. | The standup is at 9:30am
The budget is $5,000 | The budget is 5000 dollars
The budget is $5k | The budget is $5,000
The budget is €200 | The budget is 200 EUR
Logs are kept for ninety days | Logs are kept for 90 days
The 30-second timeout applies to uploads | The 30 second timeout applies to uploads
Opening hours are 9-17 | Opening hours are 9 to 17
The meeting is on Tuesday | The meeting is on Tue
The client needs version 2 | The client needs v2
# synonyms and abbreviations
The service uses Redis for caching | The service utilises Redis for caching
The service uses Redis for caching | The service utilizes Redis for caching
The config of the app lives in etcd | The configuration of the application lives in etcd
The db is on the prod server | The database is on the production server
The docs are in the repo | The documentation is in the repository
The cluster runs on k8s | The cluster runs on Kubernetes
We use Postgres | We use PostgreSQL
The frontend is written in JS | The frontend is written in JavaScript
The admin must approve each pull request | The administrator must approve every PR
Alice has to approve the release | Alice must approve the release
Passwords need at least 12 characters | Passwords need a minimum of 12 characters
Uploads can have no more than 10 files | Uploads can have at most 10 files
The user's favourite colour is blue | The user's favorite color is blue
Backups run daily | Backups run every day
Stop the service prior to the migration | Stop the service before the migration
Please use tabs for indentation | Use tabs for indentation
Note that the API is public | The API is public
The user's e-mail address is a@example.com | The user's email address is a@example.com
# inflection
Alice and Bob use the staging cluster | Alice and Bob are using the staging cluster
The team is using Slack | The team uses Slack
The policy applies to all user accounts | The policies apply to all user account
The user is not using the old client | The user does not use the old client
The admin runs the migrations | The admin runs the migration
# moved phrases
Every Friday the team deploys to production | The team deploys to production every Friday
On Fridays, we do not deploy | We do not deploy on Fridays
In staging, debug logging is enabled | Debug logging is enabled in staging
If the build is red, do not merge | Do not merge if the build is red
After the release, the branch is deleted | The branch is deleted after the release
On Tuesdays the user works from home | The user works from home every Tuesday
At 3 pm the backup starts | The backup starts at 15:00
The owner of the billing service is Alice | Alice is the owner of the billing service
The default port is 8080 | 8080 is the default port
# typing mistakes
The deployement runs on Fridays | The deployment runs on Fridays
The enviroment is staging | The environment is staging
The user wants notfications in the evening | The user wants notfications in the evening.
The dashbaord shows the latency | The dashboard shows the latency
Please seperate the services | Please separate the services
"""

Pair = tuple[str, str, str]


def _read(text: str) -> list[Pair]:
    found, heading = [], ""
    for line in text.strip().splitlines():
        if line.startswith("# "):
            heading = line[2:]
        else:
            old, new = line.split(" | ")
            found.append((heading, old, new))
    return found


LOOK_ALIKES = _read(_LOOK_ALIKES)
REPHRASINGS = _read(_REPHRASINGS)
