import type { Chance } from './chance.ts'
import type { Asked } from './send-request.ts'

/** A record whose price one of its fields is: in dollars, as exact as the token is. */
type Parcel = {
  readonly mark: string
  readonly fee: number
  readonly toll: { readonly amount: number }
}

type ParcelField = 'fee' | 'toll.amount'

const unitsOfDollar = 1_000_000
/** The most that a field says, in atomic units. */
const unitsMax = 6_000

/** Chooses the field that parcels cost by, so that another list of the shop's prices may name another field. */
export function getParcelField(price: bigint): ParcelField {
  return price % 1_000n === 0n ? 'fee' : 'toll.amount'
}

/** Makes the rule for writing parcels, as the shop sets it with each list of prices. */
export function makeParcelRule(price: bigint) {
  return {
    target: { collection: 'parcels' },
    operation: 'write',
    model: 'field_value',
    field: getParcelField(price),
  } as const
}

/** Makes a parcel for each mark, with values that chance draws; none is free. */
export function makeParcels(
  chance: Chance,
  marks: readonly { readonly mark: string }[],
): readonly Parcel[] {
  const draw = (what: string) => chance.between(what, 1, unitsMax) / unitsOfDollar
  return marks.map(({ mark }) => ({
    mark,
    fee: draw(`${mark} fee`),
    toll: { amount: draw(`${mark} toll`) },
  }))
}

/** Makes a request for other parcels than those of a request, one of them dearer. */
export function listDearerParcels({ body }: Asked): readonly Parcel[] {
  const [first, ...others] = listParcels(body)
  if (first === undefined) return []
  const more = 1 / unitsOfDollar
  const dearer = { fee: first.fee + more, toll: { amount: first.toll.amount + more } }
  return [{ ...first, ...dearer }, ...others].map((one) => ({ ...one, mark: `stolen ${one.mark}` }))
}

/** Computes what it costs to write the parcels of a request, in whole atomic units. */
export function computeParcelCost({ body }: Asked, field: ParcelField): bigint {
  return listParcels(body).reduce((sum, { fee, toll }) => {
    const dollars = field === 'fee' ? fee : toll.amount
    return sum + BigInt(Math.round(dollars * unitsOfDollar))
  }, 0n)
}

function listParcels(body: object): readonly Parcel[] {
  // The body was made here.
  return (body as { readonly data: readonly Parcel[] }).data
}
