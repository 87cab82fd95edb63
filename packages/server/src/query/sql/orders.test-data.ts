const customers = [
  ['c1', 'Ann', 'Graz', 5],
  ['c2', 'Bob', 'Wien', 3],
  ['c3', 'A_na', 'Graz', 1],
  ['c4', ' Dan ', null, 2],
  ['c5', 'Éva', 'Linz', null],
].map(([id, name, city, score]) => ({ id, name, city, score }))
const orders = Array.from({ length: 40 }, (_, at) => ({
  id: at + 1,
  customer: at % 7 === 0 ? null : `c${(at * 3) % 6}`,
  amount: at % 9 === 4 ? null : ((at * 37) % 50) + (at % 4) / 4,
  status: ['open', 'closed', 'Open', 'sent'][(at * 5) % 4],
  paid: at % 5 === 0 ? null : at % 3 === 0,
  at:
    at % 8 === 3
      ? null
      : new Date(Date.UTC(2024, at % 4, 1 + at, at % 24, 30)).toISOString().slice(0, 19),
}))
const items = Array.from({ length: 60 }, (_, at) => ({
  id: at + 1,
  order_id: ((at * 7) % 45) + 1,
  sku: `s${at % 6}`,
  quantity: (at % 4) + 1,
  price: ((at * 13) % 40) / 2,
}))
/** Records of the collections that the statements of accepted.test-data.ts are about. */
export const data = { customers, orders, items }
