-- A small mail-order shop on a morning when some parcels are late.

CREATE TABLE products (
  sku TEXT PRIMARY KEY, title TEXT NOT NULL, price REAL NOT NULL, stock INTEGER NOT NULL
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer TEXT NOT NULL, email TEXT NOT NULL,
  status TEXT NOT NULL, placed TEXT NOT NULL
);
CREATE TABLE lines (order_id INTEGER NOT NULL, sku TEXT NOT NULL, quantity INTEGER NOT NULL);
CREATE TABLE scans (order_id INTEGER NOT NULL, at TEXT NOT NULL, place TEXT NOT NULL, event TEXT NOT NULL);
CREATE TABLE reservations (order_id INTEGER NOT NULL, sku TEXT NOT NULL, quantity INTEGER NOT NULL);
CREATE TABLE refunds (order_id INTEGER NOT NULL, amount REAL NOT NULL, reason TEXT NOT NULL);

INSERT INTO products VALUES
  ('kettle', 'Steel kettle, 1.2 l', 39.00, 14),
  ('lamp', 'Desk lamp, brass', 84.50, 0),
  ('mug', 'Mug, hand-thrown', 12.00, 3),
  ('grinder', 'Coffee grinder', 129.00, 1);

INSERT INTO orders VALUES
  (1001, 'Ada', 'ada@example.com', 'delivered', '2026-03-02'),
  (1002, 'Boris', 'boris@example.com', 'late', '2026-03-04'),
  (1003, 'Chiara', 'chiara@example.com', 'late', '2026-03-05'),
  (1004, 'Dilan', 'dilan@example.com', 'late', '2026-03-05'),
  (1005, 'Emre', 'emre@example.com', 'late', '2026-03-06');

INSERT INTO lines VALUES
  (1001, 'mug', 2), (1002, 'lamp', 1), (1002, 'mug', 1), (1003, 'kettle', 1), (1004, 'mug', 4), (1005, 'grinder', 1);

INSERT INTO scans VALUES
  (1001, '03-02 17:10', 'Lyon', 'collected'), (1001, '03-04 09:30', 'Basel', 'delivered'),
  (1002, '03-04 16:00', 'Lyon', 'collected'), (1002, '03-06 23:55', 'Dijon', 'lost'),
  (1003, '03-05 16:20', 'Lyon', 'collected'), (1003, '03-09 06:45', 'Turin', 'in customs'),
  (1004, '03-05 16:20', 'Lyon', 'collected'), (1004, '03-07 11:15', 'Metz', 'damaged'),
  (1005, '03-06 15:40', 'Lyon', 'collected'), (1005, '03-08 19:05', 'Dijon', 'lost');
