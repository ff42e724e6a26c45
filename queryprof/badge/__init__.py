"""The badge in the page: what each request executed, for development."""
