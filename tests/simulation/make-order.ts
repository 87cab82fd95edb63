import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey, signTransfer } from './buyer-keys.ts'
import type { Exhibit } from './exhibits.ts'
import { computeLetterCost, firstSamples, listSampleQuotes, type Shelf } from './letter-rules.ts'
import { computeLibraryQuote, makeLibraryRequest, pickLibraryItem, scans } from './library.ts'
import type { Market } from './market.ts'
import { makeNativeOrder } from './native-order.ts'
import { base64, type Naming, type Order, type Quoted } from './order.ts'
import { computeParcelCost, getParcelField, makeParcels } from './parcel-rules.ts'
import {
  makeDepositRequest,
  makeJoinRequest,
  makeListRequest,
  makeNewsRequest,
  makeStoreRequest,
} from './requests.ts'
import type { Asked } from './send-request.ts'
import { newsPrice, otherNetwork, ownNetwork } from './shop.ts'
import { signUptoOrder } from './sign-upto.ts'
import { isOfResult, makeResultRequest } from './surveys.ts'

type Entry = {
  readonly network: string
  readonly amount?: string
  readonly maxAmountRequired?: string
  readonly payTo: string
  readonly extra: {
    readonly quoteId: string
    readonly price?: string
    readonly costBreakdown: { readonly derive?: number }
  }
}

const triesMax = 12

/** Requests a price, and signs a payment for it; chance picks the kind where none is wished. */
export async function requestOrder(
  market: Market,
  who: string,
  {
    n,
    wish,
    naming,
    isUpto = false,
    isNative = false,
    shelf,
    item,
  }: {
    readonly n: number
    readonly wish?: Order['kind']
    readonly naming?: Naming
    readonly isUpto?: boolean
    /** The buyer moves the money itself. */
    readonly isNative?: boolean
    readonly shelf?: Shelf
    /** A thing of the library. */
    readonly item?: Exhibit
  },
): Promise<Order | undefined> {
  const { chance, scheduler } = market
  const name = `${who}.${n}`
  const isChosen = shelf !== undefined || item !== undefined
  const isOpen = wish === undefined && naming === undefined && !isChosen && !isUpto && !isNative
  const isNews = isOpen && market.subjects.has('news') && chance.happens(`${who} reads news`, 600)
  const subjects = isUpto ? new Set(['library']) : market.subjects
  const goesToLibrary = isUpto ? wish === undefined : isOpen && !isNews
  const picked = goesToLibrary ? pickLibraryItem({ chance, subjects }, who) : undefined
  const libraryItem = item ?? picked
  const drawn = chance.pick(`${who} kind`, ['read', 'read', 'write', 'write', 'deposit'] as const)
  const like = naming?.like
  const fit = (isUpto || isNative) && drawn === 'deposit' ? 'read' : drawn
  const ofShelf = shelf && (isOfResult(shelf) ? 'read' : 'write')
  const kind = ofShelf ?? like?.kind ?? wish ?? (isNews || libraryItem !== undefined ? 'read' : fit)
  // A permit is for more rows than there are: what it takes is less than it allows.
  const readMax = isUpto && libraryItem === undefined ? 30 : 9
  const rowsMax = kind === 'write' ? 3 : libraryItem === 'scans' ? scans.length : readMax
  const rows = like?.rows ?? chance.between(`${who} rows`, 1, rowsMax)
  const marks = Array.from({ length: rows }, (_, at) => ({ mark: `${name}/${at}` }))
  const isPlain =
    kind === 'read' && !isNews && libraryItem === undefined && naming === undefined && !shelf
  const isJoin = isPlain && chance.happens(`${who} joins`, 400)
  const reading = isNews
    ? makeNewsRequest()
    : isOfResult(shelf)
      ? makeResultRequest(shelf, rows)
      : isJoin
        ? makeJoinRequest(rows)
        : makeListRequest(rows)
  const elsewhere = libraryItem && makeLibraryRequest(libraryItem, rows)
  const collection = shelf ?? 'notes'
  const data = shelf === 'parcels' ? makeParcels(chance, marks) : marks
  const asked =
    like?.asked ?? elsewhere ?? (kind === 'write' ? makeStoreRequest(collection, data) : reading)
  const mayBeNamed = kind === 'write' && naming === undefined && market.subjects.has('names')
  const isNamed = mayBeNamed && chance.happens(`${who} names it`, 500)
  const own: Readonly<Record<string, string>> = {
    ...(kind === 'write' && { 'x-app-key': market.keys.appKey }),
    ...(isNamed && { 'idempotency-key': `buy-${name}` }),
  }
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const step = market.step()
    const answer = await market.send(name, asked, { headers: own })
    if (answer?.status === 402) {
      const what = { name, kind, isJoin, isNews, libraryItem, shelf, asked, own, rows, naming }
      const make = isUpto ? signUptoOrder : isNative ? makeNativeOrder : makeOrder
      const order = make(market, { ...what, answer })
      judgeQuote(market, order, step)
      return order
    }
    // An earlier try, whose answer was not waited for, may be under way.
    const isBusy = isNamed && answer?.code === 'REQUEST_IN_PROGRESS'
    if (answer !== undefined && answer.status < 500 && !isBusy)
      market.wrong(`${name}: without a payment the answer was ${answer.status} ${answer.text}`)
    await scheduler.sleep(chance.between(`${who} waits for a quote`, 500, 5_000))
  }
  return undefined
}

/** Checks that the price was in force at some time since the step. */
function judgeQuote(market: Market, order: Order, step: number): void {
  const { name, isJoin, isNews, libraryItem, shelf, rows, price, derive } = order
  if (isNews) {
    if (price !== newsPrice) market.wrong(`${name} was asked for ${price} for news`)
    return
  }
  if (libraryItem !== undefined) {
    if (price !== computeLibraryQuote(libraryItem, rows))
      market.wrong(`${name} was asked for ${price} for ${rows} ${libraryItem}`)
    return
  }
  if (shelf !== undefined) {
    const quotes = listShelfQuotes(market, { shelf, asked: order.asked, rows }, step)
    if (!quotes.includes(price))
      market.wrong(`${name} was asked for ${price} for ${rows} ${shelf}, and not for ${quotes}`)
    return
  }
  const wholes = market.prices.since(step).map((one) => one * BigInt(rows) + derive)
  const derives = isJoin ? market.derives.since(step) : [0n]
  if (!wholes.includes(price) || !derives.includes(derive))
    market.wrong(`${name} was asked for ${price} with ${derive}, by a price that is not in force`)
}

/** Lists what the things of a shelf could cost at some time since the step. */
function listShelfQuotes(
  { samples, prices }: Market,
  { shelf, asked, rows }: { readonly shelf: Shelf; readonly asked: Asked; readonly rows: number },
  step: number,
): readonly bigint[] {
  if (shelf === 'letters') return [computeLetterCost(asked, rows)]
  if (shelf === 'parcels')
    return prices.since(step).map((price) => computeParcelCost(asked, getParcelField(price)))
  const told = samples.told.filter((at) => at < step).length
  // A view may be a moment behind what it is made of.
  const least = firstSamples.length + (shelf === 'galleries' ? 0 : told)
  return listSampleQuotes(rows, least, samples.most)
}

/** Says that an entry asks for an authorization of the token. */
function isSigned({
  scheme,
  extra,
}: {
  scheme: string
  extra: { paymentMethod?: string }
}): boolean {
  return scheme === 'exact' && extra.paymentMethod !== 'native'
}

function makeOrder(market: Market, given: Quoted): Order {
  const { chance, scheduler } = market
  const { name, kind, isJoin, isNews, libraryItem, shelf, own, rows, naming, answer } = given
  // Without a quote a payment says nothing about the parts of its price; version 1 has no extensions.
  const mayBeV1 = kind !== 'deposit' && !isJoin && naming === undefined
  const isV1 = mayBeV1 && chance.happens(`${name} version 1`, 250)
  const required = isV1
    ? JSON.parse(answer.text)
    : JSON.parse(Buffer.from(answer.headers['payment-required'] ?? '', 'base64').toString())
  const entry: Entry = chance.pick(`${name} way`, required.accepts.filter(isSigned))
  const where = [ownNetwork.id, ownNetwork.v1Name].includes(entry.network)
    ? ownNetwork
    : otherNetwork
  const isDirect = entry.payTo !== where.payTo
  const network = isDirect ? { ...where, payTo: entry.payTo } : where
  const key = deriveBuyerKey(name.split('.')[0] ?? name)
  const payer = deriveAddress(key)
  const nonce = `0x${chance.bytes(`${name} nonce`, 32).toString('hex')}`
  const asks = BigInt(entry.amount ?? entry.maxAmountRequired ?? 0)
  // A deposit may be worth several purchases.
  const times = kind === 'deposit' ? chance.between(`${name} times`, 1, 8) : 1
  const amount = asks * BigInt(times)
  const isBalanceOff = chance.happens(`${name} wants no balance`, 150)
  const validBefore = Math.floor(scheduler.now / 1000) + chance.between(`${name} valid`, 40, 150)
  const payload = signTransfer(network, { key, value: amount, validBefore, nonce })
  const accepted = kind === 'deposit' ? { ...entry, amount: String(amount) } : { ...entry }
  const info = { required: false, id: naming?.id }
  const extensions = naming && { 'payment-identifier': { info } }
  const v2 = { x402Version: 2, accepted, payload, ...(extensions && { extensions }) }
  const v1 = { x402Version: 1, scheme: 'exact', network: entry.network, payload }
  const settling = makeDepositRequest(isV1 ? v1 : v2)
  const asked = kind === 'deposit' ? settling : given.asked
  const header = isV1 ? { 'x-payment': base64(v1) } : { 'payment-signature': base64(v2) }
  scheduler.note(`${name} signs ${amount} on ${network.id} for ${kind} of ${rows}`)
  return {
    name,
    kind,
    asked,
    headers:
      kind === 'deposit' ? {} : { ...own, ...header, ...(isBalanceOff && { 'x-balance': 'off' }) },
    network,
    payer,
    nonce,
    amount,
    price: BigInt(entry.extra.price ?? asks),
    isNews,
    libraryItem,
    shelf,
    isUpto: false,
    isDirect,
    isJoin,
    derive: BigInt(entry.extra.costBreakdown.derive ?? 0),
    rows,
    validBefore,
    signedStep: market.step(),
    deliveredStep: undefined,
    quoteId: isV1 ? undefined : entry.extra.quoteId,
    settling,
    isUsedBefore: false,
    isBalanceOff,
    isSpent: false,
    delivered: undefined,
  }
}
