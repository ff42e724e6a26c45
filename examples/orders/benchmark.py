"""Work with fixed data, which `queryprof ab` compares between two revisions."""

from orders import best_customers, make_shop, revenue_of

shop = make_shop()
for customer in range(1, 11):
    revenue_of(shop, customer)
best_customers(shop, 3)
shop.close()
