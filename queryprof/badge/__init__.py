"""The badge in the page: what each request asked of the database, for development."""
