"""Values as text for users: tables, live lines, plans."""
