import { createHash } from 'node:crypto';
import lists from './corpus/shop.json' with { type: 'json' };

/** The lists of `corpus/shop.json`: names, streets, cities and products as a European web shop has them. */
interface ShopLists {
  readonly first: readonly string[];
  readonly last: readonly string[];
  readonly street: readonly string[];
  readonly city: readonly (readonly [city: string, postcode: string, country: string])[];
  readonly mail: readonly string[];
  readonly product: readonly string[];
  readonly note: readonly string[];
  readonly carrier: readonly string[];
  readonly payment: readonly string[];
  readonly warehouse: readonly string[];
}

const SHOP = lists as unknown as ShopLists;

/** An order as a web shop announces it. */
export interface ShopOrder {
  readonly orderId: string;
  readonly note: string;
  readonly [member: string]: unknown;
}

/**
 * An order whose JSON has exactly so many bytes, the same in every run. Ids, amounts, times and telephone numbers are drawn anew
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
  for (;;) {
    const larger = { ...order, lines: [...lines, line(draw)] };
    if (JSON.stringify(larger).length > bytes) break;
    lines.push(larger.lines.at(-1));
    order = { ...order, lines: [...lines] };
  }
  let note = '';
  while (note.length < left()) note += `${note === '' ? '' : ' '}${draw.from(SHOP.note)}`;
  return { ...order, note: note.slice(0, left()) };
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
  const [city, postcode, country] = draw.from(SHOP.city);
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
