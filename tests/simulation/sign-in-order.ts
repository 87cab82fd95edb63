import { hashRequest } from '@tollbase/verify/receipt'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import { computeLibraryQuote, makeLibraryRequest, pickLibraryItem, scans } from './library.ts'
import type { Market } from './market.ts'
import type { Bought, Order } from './order.ts'
import { makeListRequest, makeNewsRequest, makeStoreRequest } from './requests.ts'
import { type Answer, toRequestParts } from './send-request.ts'
import { newsPrice, ownNetwork } from './shop.ts'
import { type Challenge, readChallenge, signChallenge } from './sign-in-forms.ts'

/** A challenge that a wallet signed, for one request. */
export type SignIn = {
  readonly challenge: Challenge
  readonly chainId: string
  readonly headers: { readonly 'sign-in-with-x': string }
  /** The most that the wallet agreed to pay, in atomic units. */
  readonly most: bigint
  /** From then on it is good for nothing, in milliseconds since 1970. */
  readonly endsMs: number
  /** The market's step before which it was asked for. */
  readonly step: number
  /** The times that it was sent with the request that it is for. */
  sent: number
  /** An answer shows that the service took it. */
  isTaken: boolean
}

/** Something that the balance of a wallet pays for, which signs in, as its buyer knows it. */
export type SignInOrder = Bought &
  Pick<Order, 'deliveredStep' | 'delivered' | 'signedStep'> & {
    readonly who: string
    readonly key: Buffer
    /** The headers that its request has beside the sign-in, the name among them. */
    readonly own: Readonly<Record<string, string>>
    /** The Idempotency-Key makes one purchase of all its sign-ins; without one each is a purchase of its own. */
    readonly isNamed: boolean
    readonly signIns: SignIn[]
  }

const triesMax = 12

type Wanted = {
  readonly who: string
  readonly n: number
  /** The name of the wallet that pays. */
  readonly wallet: string
}

/** Picks something to buy out of the balance of a wallet. */
export function pickSignInOrder(market: Market, wanted: Wanted): SignInOrder {
  const { chance, keys, subjects } = market
  const { who, n } = wanted
  const name = `${who}.${n}`
  const isNews = subjects.has('news') && chance.happens(`${who} reads news`, 200)
  const libraryItem = isNews ? undefined : pickLibraryItem(market, who)
  const isElsewhere = isNews || libraryItem !== undefined
  const drawn = chance.pick(`${who} kind`, ['read', 'write'] as const)
  const kind = isElsewhere ? 'read' : drawn
  const rowsMax = kind === 'write' ? 3 : libraryItem === 'scans' ? scans.length : 9
  const rows = chance.between(`${who} rows`, 1, rowsMax)
  const marks = Array.from({ length: rows }, (_, at) => ({ mark: `${name}/${at}` }))
  const elsewhere = libraryItem && makeLibraryRequest(libraryItem, rows)
  const reading = isNews ? makeNewsRequest() : makeListRequest(rows)
  // By its name it is known in the end what each thing of the library cost whom.
  const isNamed = libraryItem !== undefined || chance.happens(`${who} names it`, 500)
  return {
    ...makeSignInOrder(market, wanted),
    ...{ kind, rows, isNews, libraryItem, isNamed },
    asked: elsewhere ?? (kind === 'write' ? makeStoreRequest('notes', marks) : reading),
    own: {
      ...(kind === 'write' && { 'x-app-key': keys.appKey }),
      ...(isNamed && { 'idempotency-key': `sign-in-${name}` }),
    },
  }
}

/** Makes the order of one row of the goods. */
export function makeSignInOrder(market: Market, { who, n, wallet }: Wanted): SignInOrder {
  const key = deriveBuyerKey(wallet)
  const now = { signedStep: market.step(), deliveredStep: undefined, delivered: undefined }
  return {
    kind: 'read',
    ...{ name: `${who}.${n}`, who, key, rows: 1, asked: makeListRequest(1), own: {} },
    ...{ network: ownNetwork, payer: deriveAddress(key), nonce: '', quoteId: undefined, ...now },
    ...{ isJoin: false, isNews: false, isDirect: false, shelf: undefined, libraryItem: undefined },
    ...{ isNamed: false, signIns: [] },
  }
}

/** Asks for the challenge of a request, and signs it; undefined where no answer offers one. */
export async function signFor(market: Market, order: SignInOrder): Promise<SignIn | undefined> {
  const { chance, scheduler } = market
  const { name, asked, own } = order
  // Under its name, who may write is told the answer itself, or that it is lost.
  const { 'idempotency-key': _, ...unnamed } = own
  for (let n = 0; n < triesMax; n++) {
    const step = market.step()
    const answer = await market.send(`${name} asks`, asked, { headers: unnamed })
    if (answer?.status === 402) return sign(market, order, { answer, step })
    if (answer !== undefined && answer.status < 500)
      market.wrong(`${name}: without a payment the answer was ${answer.status} ${answer.text}`)
    await scheduler.sleep(chance.between(`${name} waits for a challenge`, 500, 5_000))
  }
  return undefined
}

/** Checks that the challenge is for this very request, and for a price in force, and signs it. */
function sign(
  market: Market,
  order: SignInOrder,
  { answer, step }: { readonly answer: Answer; readonly step: number },
): SignIn | undefined {
  const { name, asked, key, signIns } = order
  const offered = readChallenge(answer)
  if (offered === undefined) {
    market.wrong(`${name} was offered no sign-in: ${answer.text}`)
    return undefined
  }
  const { challenge, chainIds } = offered
  const [hash, most = ''] = challenge.requestId.split(':')
  const quotes = listQuotes(market, order, step)
  if (hash !== hashRequest(toRequestParts(asked)))
    market.wrong(`${name} was asked to sign in for another request: ${challenge.requestId}`)
  if (!quotes.includes(BigInt(most)))
    market.wrong(`${name} was asked to sign in for ${most}, and not for ${quotes}`)
  const chainId = market.chance.pick(`${name} chain`, chainIds)
  const signIn: SignIn = {
    ...{ challenge, chainId, most: BigInt(most), step },
    headers: signChallenge(challenge, { key, chainId }),
    endsMs: Date.parse(challenge.expirationTime),
    ...{ sent: 0, isTaken: false },
  }
  signIns.push(signIn)
  market.scheduler.note(`${name} signs in for at most ${most}`)
  return signIn
}

/** Says that an order may cost more by now than its wallet agreed to. */
export function mayBeDear(market: Market, order: SignInOrder, { step, most }: SignIn): boolean {
  return listQuotes(market, order, step).some((quote) => quote > most)
}

/** Lists what an order could cost, at most, at some time since the step. */
function listQuotes(
  { prices }: Market,
  { isNews, libraryItem, rows }: SignInOrder,
  step: number,
): readonly bigint[] {
  if (isNews) return [newsPrice]
  if (libraryItem !== undefined) return [computeLibraryQuote(libraryItem, rows)]
  return prices.since(step).map((price) => price * BigInt(rows))
}
