import { type Body, findHeldOn, readEntries } from './books.ts'
import { toPaidAccount } from './delivery-checks.ts'
import type { Market } from './market.ts'

/** The states of a claim in which nobody knows that its money came. */
const unknown: readonly (string | undefined)[] = [undefined, 'claimed', 'failed', 'void']

/**
 * Checks by the entries alone that money which came before a restore, and of which the restored service does not know
 * what it bought, buys nothing: it is held, and is released once, to who paid it, or taken back. Only what the log says
 * was written for it is charged for.
 */
export async function checkRestores(market: Market, bodies: readonly Body[]): Promise<string[]> {
  if (market.restores.length === 0) return []
  const entries = await readEntries(market.database, 'app_1')
  const written = new Set(entries.map(({ header }) => header.payment))
  const sold = new Set(bodies.flatMap((body) => (body.kind === 'sale' ? [body.payment_id] : [])))
  const booked = new Set<string>()
  const held = new Map<string, Body>()
  const problems: string[] = []
  for (const [nth, body] of bodies.entries()) {
    const { kind, identity, payment_id: id } = body
    const heldOn = findHeldOn(body)
    if (kind === 'deposit' && !booked.has(identity)) {
      booked.add(identity)
      if (heldOn !== undefined) held.set(heldOn, body)
      const isBought = sold.has(id) && !written.has(id)
      const why = judgeDeposit(market, body, { nth, isBought, isWritten: written.has(id) })
      if (why !== undefined) problems.push(`${id} ${why}`)
    }
    if (kind !== 'release' && kind !== 'reversal') continue
    const deposit = held.get(heldOn ?? '')
    if (deposit === undefined || heldOn === undefined) continue
    held.delete(heldOn)
    if (kind === 'release' && !isRelease(body, deposit, heldOn))
      problems.push(`${id} was released by ${JSON.stringify(body.postings)}`)
  }
  market.scheduler.note(`${market.restores.length} restores, ${held.size} payments are held`)
  return [...problems, ...[...held.keys()].map((account) => `${account} is held in the end`)]
}

/** Says what is wrong with a deposit, if its money is from before the restore after which it was booked. */
function judgeDeposit(
  { chain, restores, subjects }: Market,
  body: Body,
  {
    nth,
    isBought,
    isWritten,
  }: { readonly nth: number; readonly isBought: boolean; readonly isWritten: boolean },
): string | undefined {
  const [, , payer = '', nonce = ''] = body.identity.split('/')
  const heldOn = findHeldOn(body)
  const restored = restores.filter(({ entries }) => entries <= nth).at(-1)
  if (heldOn !== undefined && heldOn !== `held:${toPaidAccount(payer)}:${body.payment_id}`)
    return `is held on ${heldOn}`
  if (restored === undefined || body.network !== chain.network.id)
    return heldOn === undefined ? undefined : 'is held, and its network was not restored'
  const moved = chain.moved(payer, nonce)
  // A chain that takes back more may have had it in another block.
  if (moved === undefined || subjects.has('reversals')) return undefined
  if (moved.seconds > restored.seconds)
    return heldOn === undefined ? undefined : 'is held, and its money came since the restore'
  if (isWritten || heldOn !== undefined) return undefined
  if (!isBought) return 'may have bought something in the lost life, and is free'
  return unknown.includes(restored.states.get(body.payment_id))
    ? 'bought something, and may have done so in the lost life'
    : undefined
}

function isRelease({ postings }: Body, { identity, amount }: Body, heldOn: string): boolean {
  const [, , payer = ''] = identity.split('/')
  const wanted = [
    { account: heldOn, amount: `-${amount}` },
    { account: toPaidAccount(payer), amount },
  ]
  const found = postings.map((one) => ({ account: one.account, amount: one.amount }))
  return JSON.stringify(found) === JSON.stringify(wanted)
}
