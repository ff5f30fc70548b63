# What a model wrote when it was asked: "Look after the orders that are late."
import asyncio

late = orders(status="late")
print(f"{len(late)} orders are late")

trails = await asyncio.gather(*[track(order_id=order["id"]) for order in late])  # all parcels at once

settled = []
for order, scans in zip(late, trails):
    last = scans[-1]
    print(f"\n{order['id']} {order['customer']}: {last['event']}, {last['place']}, {last['at']}")
    if last["event"] not in ("lost", "damaged"):
        write_letter(email=order["email"], text=f"Your parcel is {last['event']} in {last['place']}.")
        continue

    replaced, owed = [], 0.0
    for line in orders.lines(order["id"]):
        if stock(line["sku"]) >= line["quantity"]:
            left = reserve(order["id"], line["sku"], line["quantity"])
            replaced.append(line["title"])
            print(f"  {line['quantity']} x {line['title']} goes out again, {left} left")
        else:
            owed += line["quantity"] * line["price"]
            print(f"  {line['quantity']} x {line['title']} is out of stock")

    letter = ["We are sorry about your parcel."]
    if replaced:
        letter.append(f"On its way again: {', '.join(replaced)}.")
    if owed:
        try:
            print(" ", refund(order_id=order["id"], amount=owed, reason=f"parcel {last['event']}"))
            letter.append(f"You get {owed:.2f} euros back.")
        except PermissionError as error:
            print("  not refunded:", error)
            letter.append("We are looking into your refund.")
            owed = 0.0
    write_letter(email=order["email"], text=" ".join(letter))
    settled.append({"order": order["id"], "replaced": replaced, "refunded": owed})

settled
