import { createHash } from 'node:crypto';

/** Names, streets, cities and products as a European web shop has them. */
const SHOP = {
  first: list(`
    Amara | Jonas | Priya | Mateo | Ingrid | Yusuf | Chloe | Haruto | Leila | Oskar | Bridget | Tomasz |
    Nadia | Callum | Sofia | Emeka | Greta | Rashid | Paloma | Viktor | Hannah | Dmitri | Fatima |
    Lorenzo | Zanele | Patrick | Mei | Andrzej | Camille | Rohan | Birgit | Kwame`),
  last: list(`
    Okafor | Lindqvist | Raman | Fernandez | Haugen | Demir | Beaumont | Tanaka | Haddad | Nowak |
    Gallagher | Wisniewski | Petrov | Mackenzie | Rossi | Nwosu | Baumgartner | Aziz | Castillo | Horvath |
    Fischer | Volkov | Mansouri | Bianchi | Dlamini | Whitaker | Zhang | Kowalczyk | Lefebvre | Kapoor |
    Schroeder | Mensah`),
  street: list(`
    Harbour View Road | Rue des Lilas | Calle de Alcala | Lindenstrasse | King George Avenue |
    Via Garibaldi | Prinsengracht | Storgatan | Maple Hollow Drive | Old Mill Lane | Boulevard Voltaire |
    Kastanienallee | Passeig de Gracia | Quayside Terrace | Nowy Swiat | Church Hill | Bahnhofstrasse |
    Piazza Dante | Sunset Ridge Court | Rua do Carmo | Victoria Embankment | Mariahilfer Strasse |
    Elm Grove | Karl Johans gate`),
  city: list(`
    Bristol, BS1 6TR, GB | Lyon, 69003, FR | Madrid, 28014, ES | Hamburg, 20095, DE |
    Utrecht, 3511 LX, NL | Torino, 10121, IT | Goteborg, 411 06, SE | Portland, OR 97205, US |
    Galway, H91 E9CX, IE | Krakow, 31-042, PL | Graz, 8010, AT | Porto, 4050-253, PT | Aarhus, 8000, DK |
    Basel, 4051, CH | Bergen, 5014, NO | Leuven, 3000, BE`),
  mail: list(`gmail.com | outlook.com | icloud.com | proton.me | yahoo.co.uk | web.de | orange.fr | hey.com`),
  product: list(`
    Merino Crew Sweater, Charcoal | Cast Iron Skillet 26 cm | Noise-Cancelling Headphones |
    Linen Duvet Cover, King | Trail Running Shoes, Size 43 | Pour-Over Coffee Kettle 0.9 l |
    Bamboo Cutting Board, Large | USB-C Docking Station 11-in-1 | Wool Picnic Blanket, Tartan |
    Ceramic Planter 18 cm, Sage | Stainless Water Bottle 750 ml | Desk Lamp with Dimmer, Brass |
    Organic Cotton T-Shirt, M | Board Game: Harvest Valley | Watercolour Set, 24 Pans |
    Mechanical Keyboard, Brown Switches | Yoga Mat 6 mm, Slate | Chef's Knife 20 cm, Damascus |
    Espresso Beans 1 kg, Dark Roast | Rain Jacket, Navy, Size L | Paperback: The Quiet Estuary |
    Bluetooth Speaker, Waterproof | Beeswax Candles, Set of 6 | Electric Toothbrush Heads x 8 |
    Kids' Balance Bike, Red | Leather Card Wallet, Cognac | Solar Garden Lights x 10 |
    Fountain Pen, Fine Nib | Dog Harness, Medium, Teal | Sourdough Proofing Basket 22 cm |
    Wireless Charger Stand 15 W | Vintage Film Camera Strap`),
  note: list(`
    Please leave the parcel with the neighbour at number 12 if nobody answers. |
    Gift: no invoice in the box, and wrap the sweater separately. |
    Ring the bell twice; the intercom of the second floor is broken. |
    Deliver after five in the afternoon, the office is closed before. |
    The colour should match the previous order from September. |
    Call me before delivery, the gate code changes every week. |
    If the blue one is out of stock, black is fine as well. |
    Put the receipt into a separate envelope, it goes to accounting.`),
  carrier: list(`DHL Express | UPS Standard | DPD Classic | PostNord | Royal Mail Tracked 48 | Colissimo`),
  payment: list(`card_visa | card_mastercard | paypal | klarna_invoice | apple_pay | sepa_debit`),
  warehouse: list(`ROTTERDAM-2 | LEIPZIG-1 | DAVENTRY-4 | MALAGA-1 | RENO-3`),
};

function list(text: string): readonly string[] {
  return text.split('|').map((each) => each.trim());
}

/** An order as a web shop announces it. */
export interface ShopOrder {
  readonly orderId: string;
  readonly note: string;
  readonly [member: string]: unknown;
}

/**
 * An order whose JSON has exactly a given number of bytes, the same in every run. Ids, amounts, times and telephone numbers are drawn
 * for each order, as are names, streets and products from their lists. Members are added while they fit, then order lines; the
 * customer's note fills what is left.
 *
 * @throws RangeError when so few bytes do not hold the order's id
 *
 * @example
 * ```ts
 * shopOrder('order-00000001', 1_024); // { orderId: 'order-00000001', currency: 'EUR', …, lines: [ … ], note: 'Please …' }
 * ```
 */
export function shopOrder(orderId: string, bytes: number): ShopOrder {
  const draw = drawer(orderId);
  let order: ShopOrder = { orderId, note: '' };
  const left = () => bytes - JSON.stringify(order).length;
  if (left() < 0) throw new RangeError(`${bytes} bytes do not hold ${JSON.stringify(order)}`);
  for (const member of members(draw)) {
    const larger = { ...order, ...member };
    if (JSON.stringify(larger).length <= bytes) order = larger;
  }
  const lines: unknown[] = [];
  let length = JSON.stringify({ ...order, lines }).length;
  for (;;) {
    const next = line(draw);
    length += JSON.stringify(next).length + Math.min(1, lines.length);
    if (length > bytes) break;
    lines.push(next);
  }
  if (lines.length > 0) order = { ...order, lines };
  const rest = left();
  let note = '';
  while (note.length < rest) note += `${note === '' ? '' : ' '}${draw.from(SHOP.note)}`;
  return { ...order, note: note.slice(0, rest) };
}

function members(draw: Drawer): readonly object[] {
  const [first, last] = [draw.from(SHOP.first), draw.from(SHOP.last)];
  const email = `${first}.${last}${draw.below(100)}@${draw.from(SHOP.mail)}`.toLowerCase();
  return [
    { currency: draw.from(['EUR', 'GBP', 'SEK', 'USD']), totalCents: draw.below(60_000) },
    { customer: { customerId: draw.uuid(), name: `${first} ${last}`, email } },
    { shippingAddress: { name: `${first} ${last}`, ...address(draw), phone: `+${draw.digits(11)}` } },
    {
      payment: {
        method: draw.from(SHOP.payment),
        intent: `pi_${draw.hex(24)}`,
        authorizedCents: draw.below(60_000),
      },
    },
    {
      shipment: {
        carrier: draw.from(SHOP.carrier),
        warehouse: draw.from(SHOP.warehouse),
        promisedBy: draw.time(),
      },
    },
    {
      billingAddress: {
        name: `${draw.from(SHOP.first)} ${last}`,
        ...address(draw),
        vatId: `EU${draw.digits(9)}`,
      },
    },
  ];
}

function address(draw: Drawer) {
  const [city, postcode, country] = draw.from(SHOP.city).split(', ');
  return { street: `${draw.from(SHOP.street)} ${1 + draw.below(180)}`, postcode, city, country };
}

function line(draw: Drawer) {
  return {
    sku: `${draw.hex(4).toUpperCase()}-${draw.digits(5)}`,
    title: draw.from(SHOP.product),
    quantity: 1 + draw.below(4),
    unitCents: 99 + draw.below(25_000),
    taxPercent: draw.from([0, 7, 19, 20, 25]),
    discountCents: draw.below(3) === 0 ? draw.below(1_500) : 0,
  };
}

type Drawer = ReturnType<typeof drawer>;

/** Draws from an endless stream of bytes that is made of a seed. */
function drawer(seed: string) {
  let round = 0;
  let bytes: number[] = [];
  const byte = (): number => {
    if (bytes.length === 0) bytes = [...createHash('sha256').update(`${seed} ${round++}`).digest()];
    return bytes.pop() as number;
  };
  const below = (limit: number): number => (((byte() << 16) | (byte() << 8) | byte()) >>> 0) % limit;
  const hex = (count: number): string => Array.from({ length: count }, () => below(16).toString(16)).join('');
  return {
    below,
    hex,
    digits: (count: number): string => Array.from({ length: count }, () => below(10)).join(''),
    from: <T>(list: readonly T[]): T => list[below(list.length)] as T,
    uuid: (): string => [8, 4, 4, 4, 12].map(hex).join('-'),
    time: (): string => new Date(Date.UTC(2026, 10, 22) + below(14 * 86_400) * 1_000).toISOString(),
  };
}
