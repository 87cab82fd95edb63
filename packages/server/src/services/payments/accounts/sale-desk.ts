import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import { BesideRefusedError } from '../../../chain/beside.ts'
import { runWithoutCommitNote } from '../../../chain/commit-notes.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import { makeBudget } from '../budgets/check-spending.ts'
import { type Claim, getPayerAccount, printSoldClaims } from '../claims/claim-store.ts'
import { printReplyInsertion, type ReplyToKeep } from '../claims/reply-store.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { AccountBook, type Taking } from './account-book.ts'
import { printVersionSteps, readFreeVersions, readVersions } from './account-lock.ts'
import { type BlockHold, printBlockHolds } from './holds.ts'

/** A purchase whose answer is made, and what it costs. */
export type SaleOrder = Taking & {
  readonly answer: ReplyToKeep
  /** Atomic units; not more than the claim's cap. */
  readonly charge: bigint
}

/** The claim as it is sold, or why it is not: the account has too little, or its money is not known for certain. */
export type SaleOutcome = Claim | 'short' | 'unknown'

/** A book as it was at a version of its account; that of a channel, at what was known of channels. */
type KnownBook = {
  readonly book: AccountBook
  readonly version: bigint
  readonly channelNews: number | undefined
}

/** Accounts whose books are remembered. */
const booksMax = 10_000

/** Bytes of all answers of one commit: blocks of the service's own chain wait for it, and a statement is memory. */
export const saleBytesMax = 1024 * 1024

/**
 * Sells answers that are made, all that wait in one commit: the block with the entries that charge for them, and beside
 * it their claims and kept answers. The desk remembers the money of each account from sale to sale, and the commit counts
 * each taking (`printVersionSteps`). If anybody else took anything in between, in any process, nothing is written, and
 * the hold desk decides under the lock of the accounts.
 */
export class SaleDesk {
  readonly #ports: PaymentPorts
  readonly #orders: Gatherer<SaleOrder, SaleOutcome | Fault>
  readonly #books = new Map<string, KnownBook>()

  constructor(ports: PaymentPorts) {
    this.#ports = ports
    this.#orders = new Gatherer((orders) => this.#sellAll(orders), countBytes, saleBytesMax)
  }

  /** Throws where limits of the key that pays do not allow it. `unknown` of an answer that is too large for a block. */
  async sell(order: SaleOrder): Promise<SaleOutcome> {
    if (countBytes(order) > saleBytesMax) return 'unknown'
    const outcome = await this.#orders.add(order)
    if (outcome instanceof Fault) throw outcome
    return outcome
  }

  /** Finds the money of an account as it was last read, less all that was sold since. */
  findAvailable(account: string): bigint | undefined {
    return this.#books.get(account)?.book.available
  }

  /** Forgets the money of an account from which somebody else takes, so that no commit with others is tried in vain. */
  forget(account: string): void {
    this.#books.delete(account)
  }

  async #sellAll(orders: readonly SaleOrder[]): Promise<(SaleOutcome | Fault)[]> {
    const fresh = await this.#learn(orders)
    const outcomes = orders.map((order) => this.#take(order))
    const sold = orders.filter((_, at) => isClaim(outcomes[at]))
    const written = new Set(await this.#commit(sold))
    return orders.map((order, at) => {
      const outcome = outcomes[at] ?? 'unknown'
      const account = getPayerAccount(order.claim)
      // Its book lacks the money that arrived since it was read.
      const isOld = !isClaim(outcome) && !fresh.has(account)
      if (isOld) this.#books.delete(account)
      return isOld || (isClaim(outcome) && !written.has(order)) ? 'unknown' : outcome
    })
  }

  /** Reads the books of the accounts that are not known, and returns these. */
  async #learn(orders: readonly SaleOrder[]): Promise<ReadonlySet<string>> {
    const { database } = this.#ports
    const unknown = orders.filter((order) => this.#findBook(order) === undefined)
    if (unknown.length === 0) return new Set()
    const { channelNews } = this.#ports.tenants.system.ledger
    const accounts = new Set(unknown.map(({ claim }) => getPayerAccount(claim)))
    // In this order: a taking in between is in the books, and not in the versions.
    const [versions, books] = await database.transaction((tx) =>
      Promise.all([readVersions(tx, [...accounts]), AccountBook.read(tx, this.#ports, unknown)]),
    )
    for (const account of accounts) {
      const version = versions.get(account)
      const book = books.get(account)
      const known = this.#books.get(account)
      this.#books.delete(account)
      if (version === undefined || book === undefined) continue
      if (known?.version === version) book.keepFrom(known.book)
      const isChannel = account.startsWith('channel:')
      this.#remember(account, { book, version, channelNews: isChannel ? channelNews : undefined })
    }
    return accounts
  }

  #findBook({ claim, paid }: Taking): AccountBook | undefined {
    const { ledger } = this.#ports.tenants.system
    const { book, channelNews } = this.#books.get(getPayerAccount(claim)) ?? {}
    const isOld = channelNews !== undefined && channelNews !== ledger.channelNews
    return isOld || book?.knows(paid) !== true ? undefined : book
  }

  #take(order: SaleOrder): SaleOutcome | Fault {
    const book = this.#findBook(order)
    if (book === undefined) return 'unknown'
    const taken = book.take(this.#ports, order, order.charge)
    return isClaim(taken) ? { ...taken, state: 'sold' } : taken
  }

  /**
   * Returns the orders that were written. Where others took from some of the accounts, the orders of the rest are tried
   * once more, so that nobody can keep the buyers beside it from buying.
   */
  async #commit(sold: readonly SaleOrder[]): Promise<readonly SaleOrder[]> {
    if (sold.length === 0) return []
    const known = new Map(
      sold.map(({ claim }): readonly [string, KnownBook] => {
        const account = getPayerAccount(claim)
        return [
          account,
          requirePresent(this.#books.get(account), 'the book of an account that pays'),
        ]
      }),
    )
    if (await this.#tryCommit(sold, known)) return sold
    const versions = await readFreeVersions(this.#ports.database, [...known.keys()])
    const same = new Map([...known].filter(([name, { version }]) => versions.get(name) === version))
    const rest = sold.filter(({ claim }) => same.has(getPayerAccount(claim)))
    // Where no account is to blame, one of the orders is, and nobody knows which.
    const isHopeless = rest.length === 0 || rest.length === sold.length
    const isWritten = !isHopeless && (await this.#tryCommit(rest, same))
    for (const account of known.keys())
      if (!isWritten || !same.has(account)) this.#books.delete(account)
    return isWritten ? rest : []
  }

  /** Returns false if nothing was written. */
  async #tryCommit(
    sold: readonly SaleOrder[],
    known: ReadonlyMap<string, KnownBook>,
  ): Promise<boolean> {
    try {
      const versions = [...known].map(([account, { version }]) => [account, version] as const)
      await this.#append(sold, new Map(versions))
    } catch (error) {
      if (error instanceof BesideRefusedError) return false
      for (const account of known.keys()) this.#books.delete(account)
      throw error
    }
    for (const { claim, paid, charge } of sold)
      if (paid.channel !== undefined)
        known.get(getPayerAccount(claim))?.book.moveChannel(paid.channel.use, charge)
    // One that was forgotten meanwhile is read anew.
    for (const [account, one] of known)
      if (this.#books.get(account) === one)
        this.#remember(account, { ...one, version: one.version + 1n })
    return true
  }

  async #append(sold: readonly SaleOrder[], versions: ReadonlyMap<string, bigint>): Promise<void> {
    const claims = sold.map(({ claim }): Claim => ({ ...claim, state: 'sold' }))
    const kept = sold.map(({ claim: { id }, answer }) => ({ id, keeping: answer }))
    const holds = sumHolds(sold)
    const print = (height: number) => [
      ...printVersionSteps(versions),
      printSoldClaims(claims),
      printReplyInsertion(kept),
      printBlockHolds(height, holds),
    ]
    const entries = sold.map(({ answer }) => ({ header: { type: 'ledger' }, body: answer.sale }))
    const { chain } = this.#ports.tenants.system
    // The payments are the names of what they pay for.
    await runWithoutCommitNote(() => chain.append(entries, { isOwed: true, beside: { print } }))
  }

  #remember(account: string, known: KnownBook): void {
    this.#books.delete(account)
    this.#books.set(account, known)
    const [oldest] = this.#books.keys()
    if (this.#books.size > booksMax && oldest !== undefined) this.#books.delete(oldest)
  }
}

function countBytes({ answer }: SaleOrder): number {
  return answer.body.length
}

/** Sums the charges by account and budget. */
function sumHolds(sold: readonly SaleOrder[]): BlockHold[] {
  const sums = new Map<string, BlockHold>()
  for (const { claim, paid, charge } of sold) {
    const account = getPayerAccount(claim)
    const budget = paid.spending && makeBudget(paid.spending)
    const name = JSON.stringify([account, budget])
    sums.set(name, { account, budget, amount: (sums.get(name)?.amount ?? 0n) + charge })
  }
  return [...sums.values()]
}

function isClaim(outcome: SaleOutcome | Fault | undefined): outcome is Claim {
  return typeof outcome === 'object' && !(outcome instanceof Fault)
}
