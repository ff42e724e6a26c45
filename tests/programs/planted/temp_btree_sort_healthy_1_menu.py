# healthy: sorting 25 rows takes almost no time
import hashlib
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE dish (id INTEGER PRIMARY KEY, menu INTEGER, name TEXT, price INTEGER)")
db.execute("CREATE INDEX dish_menu ON dish (menu)")
db.executemany(
    "INSERT INTO dish (menu, name, price) VALUES (?, ?, ?)",
    ((n // 25, f"dish {n * 31 % 977}", n % 40) for n in range(10_000)),
)


class MenuPrinter:
    width = 60

    def dishes(self, menu):
        yield from db.execute("SELECT name, price FROM dish WHERE menu = ? ORDER BY name", (menu,))

    def page(self, menu):
        lines = []
        for name, price in self.dishes(menu):
            words = [word.capitalize() for word in (name + " with seasonal vegetables").split()]
            left = " ".join(words)
            lines.append(left + "".join("." for _ in range(self.width - len(left))) + f"{price:>4}")
        text = "\n".join(lines)
        return text + hashlib.pbkdf2_hmac("sha256", text.encode(), b"print", 12_000).hex()


printer = MenuPrinter()
book = [printer.page(menu) for menu in range(0, 400, 7)]
assert len(book) == 58
