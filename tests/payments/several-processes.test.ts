import { giveParts } from '@tollbase/testing/give-parts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { Chain } from '../../packages/server/src/chain/chain.ts'
import { createTestChain } from '../../packages/server/src/chain/testing.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  createTestDatabase,
  type TestDatabase,
} from '../../packages/server/src/database/testing.ts'
import { noSize } from '../../packages/server/src/model/compute-cost.ts'
import { Ledger } from '../../packages/server/src/projections/ledger.ts'
import { makeApplier } from '../../packages/server/src/projections/make-applier.ts'
import {
  readAvailable,
  takeFromAccount,
} from '../../packages/server/src/services/payments/accounts/account-lock.ts'
import { tryEvent } from '../../packages/server/src/services/payments/claims/claim-steps.ts'
import {
  type Claim,
  findClaim,
  insertClaim,
  takeTransaction,
} from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { decodeClaimTerms } from '../../packages/server/src/services/payments/claims/claim-terms.ts'
import { Claims } from '../../packages/server/src/services/payments/claims/claims.ts'
import { isUntried } from '../../packages/server/src/services/payments/claims/payment-states.ts'
import { keepReply } from '../../packages/server/src/services/payments/claims/reply-store.ts'
import { getPaymentIdentity } from '../../packages/server/src/services/payments/claims/stored-payment.ts'
import { Deliverer } from '../../packages/server/src/services/payments/deliverer.ts'
import { makeDepositEntry } from '../../packages/server/src/services/payments/deposits/claim-deposit.ts'
import { makeSaleEntry } from '../../packages/server/src/services/payments/make-sale.ts'
import type { PaymentPorts } from '../../packages/server/src/services/payments/payment-ports.ts'
import { listAccountTables } from '../../packages/server/src/services/payments/payment-tables.test-support.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  digestOffer,
  makeSettler,
  type Offer,
  type Purchase,
} from '../../packages/server/src/services/payments/purchase.ts'
import { makeRequirement } from '../../packages/server/src/services/payments/quotes/quoting.ts'
import { makeStartEntry } from '../../packages/server/src/services/payments/transfers/transfer-entries.ts'
import {
  insertTransfer,
  type OutgoingTransfer,
} from '../../packages/server/src/services/payments/transfers/transfer-store.ts'
import { makePaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { SignedPayment } from '../../packages/server/src/x402/protocol.ts'
import {
  deriveAddress,
  digestTransfer,
  signDigest,
} from '../../packages/server/src/x402/signature.ts'
import { Chance } from '../simulation/chance.ts'
import { formatPair, listPairs } from '../simulation/payment-pairs.ts'
import { Died, type Life, Outside, otherHash, Steps } from './random-steps.ts'

/** More by hand: `PAYMENT_SEEDS=5000 npx vitest run tests/payments/several-processes.test.ts`. */
const seeds = Number(process.env.PAYMENT_SEEDS ?? 40)
const from = Number(process.env.PAYMENT_FROM ?? 1)

const asset = { name: 'Dollar', version: '2', symbol: 'USD', decimals: 6 }
const network = makePaymentNetwork({
  chainId: 84532,
  payTo: `0x${'a1'.repeat(20)}`,
  asset: { ...asset, address: `0x${'b2'.repeat(20)}` },
})
const amount = 100n
const charge = 40n
/** Today's price of the request and the most that it may cost: a payment that failed is tried again under those of then. */
const offers = [
  { price: charge, cap: amount },
  { price: 90n, cap: amount },
  { price: charge, cap: 60n },
] as const
const validSeconds = 100

let store: TestDatabase
let chain: Chain
let schema: string
const ledger = new Ledger()
const pairs = new Set<string>()

beforeAll(async () => {
  store = await createTestDatabase()
  const { database } = store
  const place = await createTestChain(database)
  schema = place.schema
  const tables = [
    ...ledger.tables(schema),
    sql`CREATE SCHEMA system`,
    ...[
      'settled_payment',
      'sale',
      'account',
      'transfer',
      'channel',
      'reversal',
      'storage_fee',
      'watermark',
    ].map(
      (name) => sql`CREATE VIEW ${sql.id('system', name)} AS SELECT * FROM ${sql.id(schema, name)}`,
    ),
    ...listAccountTables(),
  ]
  for (const statement of tables) await database.execute(statement)
  chain = await place.open({ applier: makeApplier(schema, [ledger]), leaseTtlMs: 600_000 })
  expect(await insertClaim(database, otherClaim, 'presented')).toBe(true)
  expect(await takeTransaction(database, otherClaim.id, otherHash)).toBe(true)
})

afterAll(async () => {
  await chain?.close()
  await store?.drop()
})

const otherClaim: Claim = {
  id: 'pay_other',
  identity: 'another payment',
  request_hash: 'hash',
  app: 'shop',
  operation: 'list',
  amount,
  cap: amount,
  transfer: null,
  quote_id: null,
  terms: null,
  valid_before: 1n,
  payment: '{}',
  state: 'claimed',
  reason: null,
  settled_by: null,
  write_after: null,
  write_form: null,
  payment_identifier: null,
  created_at_ms: 1n,
}

/** One payment, and all that come for it: each in a process of its own. */
class Scene {
  readonly chance: Chance
  readonly steps: Steps
  readonly outside: Outside
  readonly payment: SignedPayment
  readonly identity: string
  readonly account: string
  /** The payer's balance in the beginning. */
  readonly before: bigint
  readonly answers: string[] = []
  readonly problems: string[] = []
  readonly lives: Life[] = []
  #made = 0
  #nowMs = 1_000_000_000_000

  constructor(seed: number) {
    this.chance = new Chance(`several ${seed}`)
    this.steps = new Steps(this.chance)
    this.outside = new Outside(this.chance)
    const key = this.chance.bytes('payer', 32)
    const signed = {
      from: deriveAddress(key),
      to: network.payTo,
      value: amount,
      validAfter: 0n,
      validBefore: BigInt(this.#nowMs / 1000 + validSeconds),
      nonce: `0x${this.chance.bytes('nonce', 32).toString('hex')}`,
    }
    this.payment = {
      version: 2,
      network: network.id,
      scheme: 'exact',
      quoteId: `quote ${seed}`,
      receiptForm: 'base64',
      payload: { ...signed, signature: signDigest(digestTransfer(network, signed), key) },
    }
    this.account = `wallet:${signed.from}`
    this.before = this.chance.pick('balance', [0n, 0n, amount - 1n, amount, 2n * amount])
    this.identity = getPaymentIdentity(network, this.payment)
  }

  /** Ends the time in which the money can move. */
  expire(): void {
    this.#nowMs += (validSeconds + 1_000) * 1000
    this.outside.isOver = true
  }

  ports(life: Life): PaymentPorts {
    const step = <T>(name: string, work: () => Promise<T>) => this.steps.take(life, name, work)
    const { database } = store
    const stepping: Database = {
      ...database,
      query: (statement, options) =>
        step(nameStatement(statement.text), () => database.query(statement, options)),
      execute: (statement) =>
        step(nameStatement(statement.text), () => database.execute(statement)),
      transaction: (work, options) => step('lock', () => database.transaction(work, options)),
    }
    const system = {
      schema,
      ledger,
      chain: {
        head: () => chain.head(),
        watermark: () => chain.watermark(),
        whenApplied: (height: number) => step('applied', () => chain.whenApplied(height)),
        append: (...given: Parameters<Chain['append']>) =>
          step('append', () => chain.append(...given)),
      },
    }
    const ports: Partial<PaymentPorts> = {
      database: stepping,
      world: { ...realWorld, now: () => this.#nowMs },
      quoteSecret: Buffer.alloc(32, 1),
      depositSecret: Buffer.alloc(32, 2),
      methods: [{ network, facilitator: this.outside.facilitator(step) }],
      split: { platformBasisPoints: 0n },
      onStep: (state, event) => void pairs.add(formatPair(state, event)),
    }
    // Payments use nothing else of the tenants.
    return giveParts<PaymentPorts>({ ...ports, tenants: { system } })
  }

  /** Buys as the service does once it has read the payment; `request` names what is bought. */
  begin(what: 'buy' | 'steal' | 'deposit' | 'reconcile' | 'withdraw'): void {
    const isSlow = this.chance.happens('is slow', 400)
    const life = { name: `${what}${this.lives.length}`, isSlow, isDead: false }
    this.lives.push(life)
    const works = {
      buy: this.#buy,
      steal: this.#steal,
      deposit: this.#deposit,
      reconcile: reconcile,
      withdraw: withdraw,
    }
    works[what].call(this, this.ports(life), this).catch((error: unknown) => {
      if (life.isDead || error instanceof Died) return
      if (error instanceof Fault && error.code !== 'INTERNAL') return
      this.problems.push(`${life.name}: ${error instanceof Error ? error.stack : String(error)}`)
    })
  }

  async #buy(ports: PaymentPorts): Promise<void> {
    const { text } = (await this.#purchase(ports, 'the request')) ?? {}
    if (text !== undefined) this.answers.push(text)
  }

  async #steal(ports: PaymentPorts): Promise<void> {
    const { text } = (await this.#purchase(ports, 'another request')) ?? {}
    // The first request owns the payment; the two answers are told apart in the end.
    if (text !== undefined) this.answers.push(`stolen ${text}`)
  }

  async #deposit(ports: PaymentPorts): Promise<void> {
    const [method] = ports.methods
    if (method !== undefined) await new Payments(ports).deposit(this.payment, method)
  }

  async #purchase(ports: PaymentPorts, requestHash: string) {
    const claims = new Claims(ports)
    const deliverer = new Deliverer(ports)
    const asked = this.#makePurchase(ports, requestHash)
    const found = await claims.finder.findOrRefuse(asked)
    // A payment under way keeps the terms under which it was claimed.
    const isNew = found === undefined || isUntried(found.state) || found.terms === null
    const terms = isNew ? asked.terms : decodeClaimTerms(found)
    const purchase: Purchase = { ...asked, terms }
    const purpose = { app: 'shop', operation: 'list', terms }
    const usesBalance = this.chance.happens('wants to pay from the balance', 700)
    const plan = this.chance.happens('may be answered first', 500)
      ? deliverer.planAnswer(purchase)
      : undefined
    const funding = await claims.fund(purchase, purpose, { found, usesBalance, plan })
    if ('isUsedBefore' in funding) {
      await this.#deposit(ports)
      return undefined
    }
    if ('refusal' in funding) return undefined
    const { body } = await deliverer.deliver(purchase, funding.funded)
    return { text: body.toString() }
  }

  #makePurchase(ports: PaymentPorts, requestHash: string): Purchase {
    const { payment, identity } = this
    const today = this.chance.pick('price', offers)
    const price = { perAccess: today.price, perRow: 0n, perKb: 0n, emptyFree: false }
    const offer = giveParts<Offer>({
      operation: 'list',
      meaning: requestHash,
      payees: [{ account: 'app:shop', platformBasisPoints: 0 }],
      deliver: async () => {
        this.#made += 1
        if (this.chance.happens('cannot be delivered', 100)) throw new Fault('UNAVAILABLE')
        return {
          status: 200,
          body: Buffer.from(`answer ${this.#made}`),
          sizes: [noSize],
          rows: 1,
          asOf: null,
        }
      },
    })
    const terms = {
      cap: today.cap,
      prices: [price],
      payees: offer.payees,
      meaning: digestOffer(ports.quoteSecret, offer),
      quoteId: payment.quoteId ?? '',
      expiresAt: Number(payment.payload.validBefore),
    }
    const requirement = makeRequirement(network, { ...terms, amount })
    const [method] = ports.methods
    if (method === undefined) throw new Error('there is no network')
    const settler = makeSettler(ports, method, { payment, requirement })
    return { offer, payment, requirement, settler, requestHash, identity, isPayer: false, terms }
  }
}

async function reconcile(ports: PaymentPorts, scene: Scene): Promise<void> {
  const claim = await findClaim(ports.database, { identity: scene.identity })
  const isEnded = claim && claim.valid_before * 1000n < BigInt(ports.world.now())
  const open = [
    'claimed',
    'ready',
    'held',
    'owed',
    'answered',
    ...(isEnded ? ['failed', 'sold'] : []),
  ]
  if (claim !== undefined && open.includes(claim.state)) await new Payments(ports).reconcile(claim)
}

let withdrawals = 0

/** Takes all that the payer has and nothing else is promised, as his withdrawals and other purchases may. */
async function withdraw(ports: PaymentPorts, { account }: Scene): Promise<void> {
  withdrawals += 1
  const one = (all: bigint): OutgoingTransfer => ({
    id: `withdrawal ${withdrawals}`,
    kind: 'withdrawal',
    account,
    network: network.id,
    recipient: network.payTo,
    amount: all,
    fee: 0n,
    unspent: false,
    state: 'asked',
    tries: 0,
    reason: null,
    transaction: null,
    valid_before: 1n,
    created_at_ms: 1n,
  })
  const taken = await takeFromAccount(ports.database, account, async (tx, available) => {
    const order = available > 0n ? one(available) : undefined
    if (order !== undefined) await insertTransfer(tx, order)
    return order
  })
  if (taken !== undefined) await ports.tenants.system.chain.append([makeStartEntry(taken)])
}

function nameStatement(text: string): string {
  const words = text.trim().split(/\s+/)
  return `${words[0]} ${/"(claim|kept_reply|sale|settled_payment)"/.exec(text)?.[1] ?? ''}`
}

const comers = [
  'buy',
  'buy',
  'buy',
  'buy',
  'steal',
  'deposit',
  'reconcile',
  'reconcile',
  'withdraw',
] as const

async function play(scene: Scene): Promise<void> {
  const { chance, steps, outside, account, before } = scene
  if (before > 0n) {
    const paymentId = `before ${account}`
    const payer = account.slice('wallet:'.length)
    const about = { payer, amount: before, network: network.id, asset: network.asset.address }
    const entry = { ...about, paymentId, identity: paymentId, transaction: paymentId }
    await chain.append([makeDepositEntry(entry)])
  }
  const acts = chance.between('acts', 20, 120)
  scene.begin('buy')
  await steps.rest()
  for (let act = 0; act < acts; act++) {
    if (steps.isOver || chance.happens('somebody comes', 60)) {
      scene.begin(chance.pick('comer', comers))
      await steps.rest()
    }
    if (chance.happens('a process dies', 15)) chance.pick('who dies', scene.lives).isDead = true
    if (chance.happens('somebody else moves it', 15)) outside.move()
    if (chance.happens('it is over', 8)) scene.expire()
    if (!steps.isOver) await steps.next()
  }
  // In the end nothing is rough, it can be executed no more, and reconciliation comes by.
  outside.isRough = false
  if (chance.happens('all die', 500)) for (const life of scene.lives) life.isDead = true
  while (!steps.isOver) await steps.next()
  // A third party may have kept it until the last moment.
  if (chance.happens('it moves late', 300)) outside.move()
  scene.expire()
  for (let round = 0; round < 6; round++) {
    scene.begin('reconcile')
    await steps.rest()
    while (!steps.isOver) await steps.next()
  }
}

async function judge(scene: Scene): Promise<string[]> {
  const { database } = store
  const { identity, outside, answers, account, before, problems } = scene
  const claim = await findClaim(database, { identity })
  await chain.whenApplied(chain.head().height)
  const { balance } = await ledger.readBalance(database, schema, account)
  const [sums] = await database.query<{ withdrawn: string; least: string }>(sql`
    SELECT (SELECT coalesce(sum(amount), 0)::text FROM ${sql.id(schema, 'transfer')} WHERE account = ${account}) AS withdrawn,
      (SELECT coalesce(min(balance_after), 0)::text FROM ${sql.id(schema, 'posting')} WHERE account = ${account}) AS least`)
  const wrong = [...problems]
  const sale = claim && (await ledger.findSale(database, schema, claim.id))
  const came = outside.isMoved && claim !== undefined ? amount : 0n
  const charged = BigInt(sale === undefined ? 0 : JSON.parse(sale.body).amount)
  const due = before + came - BigInt(sums?.withdrawn ?? 0) - charged
  if (BigInt(sums?.least ?? 0) < 0n) wrong.push('its payer was in debt')
  if (balance !== due) wrong.push(`its payer has ${balance} and not ${due}`)
  if (new Set(answers).size > 1) wrong.push(`it bought several things: ${answers.join(', ')}`)
  if (claim !== undefined && sale !== undefined) {
    const [price] = decodeClaimTerms(claim).prices
    if (charged !== price?.perAccess || charged > claim.cap)
      wrong.push(`it was charged ${charged}, and its terms say ${price?.perAccess}`)
  }
  if (answers.length > 0 && sale === undefined) wrong.push('it was answered and not charged')
  const unmoved = sale === undefined ? 'void' : 'delivered'
  const ends = outside.isMoved ? ['deposited', 'delivered'] : [unmoved]
  if (claim !== undefined && !ends.includes(claim.state)) wrong.push(`it ended as ${claim.state}`)
  return wrong
}

test('a payment that several processes take at once, each cut off anywhere, buys one thing once, and its money is booked exactly if it came', async () => {
  for (let seed = from; seed < from + seeds; seed++) {
    const scene = new Scene(seed)
    await play(scene)
    const wrong = await judge(scene)
    expect(wrong, `seed ${seed}\n${scene.steps.trace.join('\n')}`).toEqual([])
  }
  const possible = listPairs({ possible: true })
  for (const pair of pairs) expect(possible).toContain(pair)
  if (seeds > 100) console.log(`never: ${possible.filter((pair) => !pairs.has(pair)).join(', ')}`)
}, 3_600_000)

/** A purchase whose own money came, and was booked as the balance of a payer of its own. */
async function bookOwnMoney(id: string) {
  const { database } = store
  const payer = `0x${Buffer.from(id).toString('hex').padEnd(40, '0').slice(0, 40)}`
  const identity = `${network.id}/${network.asset.address}/${payer}/${id}`
  const claim: Claim = { ...otherClaim, id, identity }
  const about = { payer, network: network.id, asset: network.asset.address, transaction: id }
  expect(await insertClaim(database, claim, 'presented')).toBe(true)
  await chain.append([makeDepositEntry({ ...about, paymentId: id, identity, amount })])
  await chain.whenApplied(chain.head().height)
  const facts = {
    ...about,
    payment_id: id,
    request_hash: claim.request_hash,
    quote_hash: null,
    payee: 'app:shop',
    amount: String(charge),
    deposited: String(amount),
    change: String(amount - charge),
    app: claim.app,
    operation: claim.operation,
    as_of: null,
    row_count: 1,
    result_hash: 'hash',
    delivered_at: '2026-01-01T00:00:00.000Z',
  }
  const sale = makeSaleEntry({ identity, facts, split: { platformBasisPoints: 0n } })
  return { claim, account: `wallet:${payer}`, sale: sale.body }
}

function makePlainPorts(): PaymentPorts {
  const { database } = store
  const quoteSecret = Buffer.alloc(32)
  const ports: Partial<PaymentPorts> = { database, world: realWorld, quoteSecret, methods: [] }
  return giveParts<PaymentPorts>({ ...ports, tenants: { system: { schema, ledger, chain } } })
}

test('an answer that was kept for money which was on the balance before is charged by reconciliation alone', async () => {
  const { database } = store
  const { claim, account, sale } = await bookOwnMoney('pay_again')
  expect(await tryEvent(store, claim, { event: 'booked', settledBy: claim.id })).toBe(true)
  const deposited = { ...claim, state: 'deposited' } as const
  expect(await tryEvent(store, deposited, { event: 'covered' })).toBe(true)
  const held = { ...claim, state: 'held' } as const
  const reply = { status: 200, body: Buffer.from('answer'), contentType: null, sale, sources: [] }
  const kept = { ...reply, settledBy: claim.id, expiresAtMs: 2e12 }
  expect(await keepReply(database, { claim: held, event: 'served', keeping: kept })).toBeDefined()
  // Here its process died, and its buyer never comes back.
  const payments = new Payments(makePlainPorts())
  await payments.reconcile({ ...claim, state: 'owed' })
  await chain.whenApplied(chain.head().height)
  expect(await ledger.findSale(database, schema, claim.id)).toBeDefined()
  expect((await ledger.readBalance(database, schema, account)).balance).toBe(amount - charge)
  await payments.reconcile({ ...claim, state: 'owed' })
  expect((await findClaim(database, claim))?.state).toBe('sold')
})

test('own money that comes while the balance is held for the same payment is not taken for no money when the hold ends', async () => {
  const { database } = store
  const { claim } = await bookOwnMoney('pay_both')
  expect(await tryEvent(store, claim, { event: 'failed', reason: 'not_sent' })).toBe(true)
  expect(await tryEvent(store, { ...claim, state: 'failed' }, { event: 'covered' })).toBe(true)
  // Another process asked while it was claimed, and hears only now that its money came.
  const deliverer = new Deliverer(makePlainPorts())
  await deliverer.deposits.book({ claim, transaction: claim.id, isFresh: false })
  expect(await findClaim(database, claim)).toMatchObject({
    state: 'deposited',
    settled_by: claim.id,
  })
})

test('what is charged stays held where the tables of the ledger stop before they have the sale', async () => {
  const { database } = store
  const { claim, account, sale } = await bookOwnMoney('pay_late')
  expect(await tryEvent(store, claim, { event: 'booked', settledBy: claim.id })).toBe(true)
  expect(await tryEvent(store, { ...claim, state: 'deposited' }, { event: 'covered' })).toBe(true)
  const held = { ...claim, state: 'held' } as const
  const reply = { status: 200, body: Buffer.from('answer'), contentType: null, sale, sources: [] }
  const kept = { ...reply, settledBy: claim.id, expiresAtMs: 2e12 }
  expect(await keepReply(database, { claim: held, event: 'served', keeping: kept })).toBeDefined()
  let isStopped = false
  const stopping = {
    head: () => chain.head(),
    append: (...given: Parameters<Chain['append']>) => chain.append(...given),
    whenApplied: (height: number) =>
      isStopped ? Promise.reject(new Error('stopped')) : chain.whenApplied(height),
  }
  const tenants = { system: { schema, ledger, chain: stopping } }
  const payments = new Payments(giveParts<PaymentPorts>({ ...makePlainPorts(), tenants }))
  await database.transaction(async (tx) => {
    // The applier waits; everybody reads.
    await tx.execute(sql`LOCK TABLE ${sql.id(schema, 'account')} IN EXCLUSIVE MODE`)
    await payments.reconcile({ ...claim, state: 'owed' })
    isStopped = true
    await payments.startUpkeep()()
    expect(await readAvailable(database, account)).toBe(0n)
  })
  await new Payments(makePlainPorts()).reconcile({ ...claim, state: 'owed' })
  expect((await findClaim(database, claim))?.state).toBe('sold')
  expect(await readAvailable(database, account)).toBe(amount - charge)
})
