"""The badge in web pages: what each request executed, for development."""
