"""The web application: accounts, jobs, a database, pages and an API; installed with the extra `platform`."""
