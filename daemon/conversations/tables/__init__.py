"""SQL on turns and what they became, as conversations ask."""
