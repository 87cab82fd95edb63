/** The document that both sides store: about 450 bytes of JSON, a unique key, two indexed fields. */
export type Item = {
  readonly id: string
  readonly city: string
  readonly price: number
  readonly title: string
  readonly tags: readonly string[]
  readonly stock: { readonly count: number; readonly warehouse: string }
  readonly active: boolean
  readonly description: string
}

export const indexedFields = ['city', 'price'] as const

/** The number of items that share one value of `city`. */
export const itemsPerCity = 10

const words =
  'amber brook cedar delta ember fjord grove harbor islet juniper kelp lagoon meadow north orchard pine quarry ridge shore tundra'.split(
    ' ',
  )

/** Makes item number `at` of `total`; keys are scattered over the index, as those of real records are. */
export function makeItem(at: number, total: number): Item {
  const scattered = Math.imul(at, 2654435761) >>> 0
  const word = (step: number) => words[(scattered + at * step) % words.length] ?? ''
  return {
    id: `item-${scattered.toString(16).padStart(8, '0')}-${at}`,
    city: getCity(at, total),
    price: (scattered % 1_000_000) / 100,
    title: `${word(1)} ${word(3)} ${word(7)} number ${at}`,
    tags: [word(2), word(5), word(11)],
    stock: { count: scattered % 500, warehouse: `wh-${scattered % 97}` },
    active: scattered % 3 !== 0,
    description: Array.from({ length: 34 }, (_, step) => word(step + 13)).join(' '),
  }
}

export function getCity(at: number, total: number): string {
  return `city-${at % Math.max(1, Math.floor(total / itemsPerCity))}`
}

/** Makes the body of a store of these items. */
export function makeStoreBody(root: string, items: readonly Item[]): string {
  return JSON.stringify({ root, data: items })
}
