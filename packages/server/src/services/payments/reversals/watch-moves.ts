import type { Logger } from 'pino'
import { requirePresent } from '../../../base/assert.ts'
import { chooseLarger } from '../../../base/bigint.ts'
import { dayMs } from '../../../base/durations.ts'
import type { Singleflight } from '../../../base/singleflight.ts'
import { type BookedMove, findMoveBefore, listBookedMoves } from '../../../projections/reversals.ts'
import type { BlockWatch, ChainLook } from '../../../x402/block-watch.ts'
import { tooManyEvents } from '../../../x402/receipt-reader.ts'
import { toUnreachable } from '../../../x402/rpc.ts'
import type { Claim } from '../claims/claim-store.ts'
import { DepositBook } from '../deposits/deposit-book.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { findFinalLeaf, setFinalLeaf } from '../settling/network-pin.ts'
import { askAgain, askTransferAgain } from './ask-again.ts'
import { findUseOf, isMadeBy, type KnownMove, readKnownMove } from './booked-move.ts'
import { readTakenBack, setTakenBack, type TakenBack } from './taken-back.ts'
import {
  endGone,
  endReversal,
  hasReversal,
  keepGone,
  writeReversal,
  writeTransferReversal,
} from './write-reversal.ts'

type Ports = PaymentPorts & {
  readonly log: Pick<Logger, 'warn'>
  /** Work on the payments that are under way in this process. */
  readonly turns: Singleflight
}

const intervalMs = 15_000
/** The time that the first look goes back, in a database from before anybody looked. */
const firstLookMs = dayMs
/** Moves that one round looks at for the first time; those after them wait for the next round. */
const bounds = { pageSize: 200, pagesMax: 100 }
/** Moves that are gone and are held, or asked about, together. */
const togetherMax = 25

/** The memory of the rounds of one network; a restart looks at everything anew. */
export type MoveMemory = {
  readonly bounds: { readonly pageSize: number; readonly pagesMax: number }
  /** The place up to which all were looked at; undefined before the first round. */
  upTo: bigint | undefined
  /**
   * By the places of their entries, in their order, those that are not final: each round looks at them again. One may stay
   * so for years, if its payer signed it for so long, and keeps no others from being looked at.
   */
  readonly open: Map<bigint, BookedMove>
  /** By the place of its entry, the height of the block that has a move. */
  readonly heights: Map<bigint, bigint>
  /** By the same, the height of the chain when it first said that a move can never be made. */
  readonly overSince: Map<bigint, bigint>
}

export function makeMoveMemory(given: Partial<MoveMemory['bounds']> = {}): MoveMemory {
  const [open, heights, overSince] = [new Map(), new Map(), new Map()]
  return { bounds: { ...bounds, ...given }, upTo: undefined, open, heights, overSince }
}

type WatchedMethod = PaymentMethod & { readonly blocks: BlockWatch }

/**
 * Watches, until their blocks are final, that the deposits and the transfers of ours that are booked stay on their
 * chains. The returned function ends it.
 */
export function startMoveWatch(ports: Ports): () => Promise<void> {
  const watched = ports.methods.flatMap((method) =>
    method.blocks === undefined
      ? []
      : [{ method: { ...method, blocks: method.blocks }, memory: makeMoveMemory() }],
  )
  let running: Promise<unknown> | undefined
  const run = () => {
    // A network that cannot be reached keeps no other one waiting.
    running ??= Promise.all(
      watched.map(({ method, memory }) =>
        runMoveRound(ports, method, memory).catch((error: unknown) =>
          ports.log.warn(
            { network: method.network.id, error: String(error) },
            'booked payments could not be looked up on their chain; trying again',
          ),
        ),
      ),
    ).finally(() => {
      running = undefined
    })
  }
  const stop = ports.world.every(intervalMs, run)
  run()
  return async () => {
    stop()
    await running
  }
}

/** Looks once at the moves of a network that are not final. */
export async function runMoveRound(
  ports: Ports,
  method: WatchedMethod,
  memory: MoveMemory,
): Promise<void> {
  const { database, tenants, world } = ports
  const { chain, schema } = tenants.system
  const network = method.network.id
  await chain.whenApplied(chain.head().height)
  let final = await findFinalLeaf(database, network)
  if (final === undefined) {
    const beforeMs = world.now() - firstLookMs
    final = await findMoveBefore(database, schema, { network, beforeMs })
    await setFinalLeaf(database, network, final)
  }
  const { pageSize, pagesMax } = memory.bounds
  const list = (after: bigint) =>
    listBookedMoves(database, schema, { network, after, limit: pageSize })
  const waiting = [...memory.open.values()]
  let page = await list(memory.upTo ?? final)
  if (page.length === 0 && waiting.length === 0) return
  const look = await method.blocks.look()
  if (!look.isSame) {
    memory.heights.clear()
    memory.overSince.clear()
  }
  const gone: GoneMove[] = []
  const failures: unknown[] = []
  const lookAt = async (page: readonly BookedMove[]) => {
    const seen = await lookAtMoves(ports, method, { page, memory, look })
    gone.push(...seen.gone)
    failures.push(...seen.failures)
    for (const move of seen.open) memory.open.set(move.leaf, move)
    for (const { leaf } of seen.ended) memory.open.delete(leaf)
  }
  for (let at = 0; at < waiting.length; at += pageSize)
    await lookAt(waiting.slice(at, at + pageSize))
  for (let pages = 1; page.length > 0; pages++) {
    await lookAt(page)
    memory.upTo = page.at(-1)?.leaf ?? memory.upTo
    if (page.length < pageSize || pages === pagesMax) break
    page = await list(memory.upTo ?? final)
  }
  failures.push(...(await judgeAllGone(ports, method, { gone, memory, look })))
  const [first] = memory.open.keys()
  const before = first === undefined ? memory.upTo : first - 1n
  world.failpoint?.('move.final')
  await setFinalLeaf(database, network, chooseLarger(before ?? final, final))
  for (const known of [memory.heights, memory.overSince])
    for (const leaf of known.keys()) if (!memory.open.has(leaf)) known.delete(leaf)
  if (failures.length > 0) throw failures[0]
}

/** A move that its chain does not have, and the note of that; undefined where nobody is to be asked about it. */
type GoneMove = KnownMove & { readonly note: TakenBack | undefined }

/** A move that its chain has, and the note of when it did not. */
type FoundMove = {
  readonly move: BookedMove
  readonly place: MovePlace
  readonly note: TakenBack | undefined
}

/**
 * Moves that were looked at: those that may still be taken back, or are being so, and those that cannot be any more. One
 * that cannot be looked at stays open, keeps no other one waiting, and is among the `failures`.
 */
type Seen = {
  readonly open: readonly BookedMove[]
  readonly ended: readonly BookedMove[]
  /** Those of the open ones that the chain does not have. */
  readonly gone: readonly GoneMove[]
  readonly failures: readonly unknown[]
}

/**
 * Looks at some moves, and holds what is left of those that the chain does not have. Nobody is asked about these before
 * all are held, and nothing is freed: both may fail, and asking may take long.
 */
async function lookAtMoves(
  ports: Ports,
  method: WatchedMethod,
  asked: {
    readonly page: readonly BookedMove[]
    readonly memory: MoveMemory
    readonly look: ChainLook
  },
): Promise<Seen> {
  const { page, memory, look } = asked
  const takenBack = await readTakenBack(
    ports.database,
    page.map(({ id }) => id),
  )
  // A process that asked before us, and noted after us that nothing is there, may have died before it asked again.
  for (const { leaf, id } of page)
    if (takenBack.get(id)?.transaction === null) memory.heights.delete(leaf)
  const unseen = page.filter(({ leaf }) => !memory.heights.has(leaf))
  const missed: KnownMove[] = []
  const found: FoundMove[] = []
  const failures: unknown[] = []
  await Promise.all(
    unseen.map(async (move) => {
      const known = await readKnownMove(ports, move)
      const note = takenBack.get(move.id)
      try {
        const place = await findPlace(method, known, note?.transaction ?? null)
        if (place === undefined) missed.push(known)
        else found.push({ move, place, note })
      } catch (error) {
        failures.push(error)
      }
    }),
  )
  const gone: GoneMove[] = []
  const reversed: KnownMove[] = []
  await forTogether(missed, async (known) => {
    if (await hasReversal(ports, known.move.id)) reversed.push(known)
    else gone.push({ ...known, note: await noteGone(ports, known) })
  })
  // All that is gone is held by now: whatever fails from here on, nobody spends it.
  await forTogether(reversed, ({ move, transfer }) => endReversal(ports, { id: move.id, transfer }))
  await forTogether(found, async ({ move: { id, leaf }, place: { height, other }, note }) => {
    if (note !== undefined && !(await endGone(ports, id, { other, note }))) return
    noteHeight(memory, look, { leaf, height })
  })
  const ended = new Set(reversed.map(({ move }) => move.leaf))
  const isEnded = ({ leaf }: BookedMove) => ended.has(leaf) || isFinal(memory, look, leaf)
  return { gone, failures, open: page.filter((one) => !isEnded(one)), ended: page.filter(isEnded) }
}

function isFinal({ heights }: MoveMemory, look: ChainLook, leaf: bigint): boolean {
  return (heights.get(leaf) ?? look.final + 1n) <= look.final
}

async function forTogether<T>(
  all: readonly T[],
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < all.length; at += togetherMax)
    await Promise.all(all.slice(at, at + togetherMax).map(work))
}

/** Notes that a move is gone, and holds what is left of its money. */
async function noteGone(
  ports: Ports,
  { claim, transfer, move }: KnownMove,
): Promise<TakenBack | undefined> {
  if (claim !== undefined) return (await keepGone(ports, claim)).note
  return transfer && setTakenBack(ports.database, move.id, null)
}

/** The block that has a move, and the transaction by which it does where that is not the one that is booked. */
type MovePlace = { readonly height: bigint; readonly other: string | null }

async function findPlace(
  { blocks, network }: WatchedMethod,
  known: KnownMove,
  other: string | null,
): Promise<MovePlace | undefined> {
  const use = findUseOf(known, network)
  for (const transaction of [known.transaction, other]) {
    if (transaction === null) continue
    const receipt = await (use === undefined
      ? blocks.findReceipt(transaction)
      : blocks.findUse(transaction, use))
    const found = { other: transaction === known.transaction ? null : transaction }
    if (receipt === 'too large') {
      // A transfer of ours is made wherever its order was used: nobody else signs one under its name.
      const height = known.transfer && (await blocks.findHeight(transaction))
      if (height !== undefined) return { height, ...found }
      throw toUnreachable(new Error(`the transaction ${transaction} ${tooManyEvents}`))
    }
    if (receipt !== undefined && isMadeBy(known, network, receipt))
      return { height: receipt.blockNumber, ...found }
  }
  return undefined
}

/** Remembers the block of a move. One above the newest block of the look could be replaced before the next look sees it. */
function noteHeight(
  { heights }: MoveMemory,
  { head }: ChainLook,
  { leaf, height }: { readonly leaf: bigint; readonly height: bigint },
): void {
  if (height <= head) heights.set(leaf, height)
}

/**
 * Asks about all moves that are gone. One of which nobody can tell, as while the gas key has too little to send it again,
 * keeps no other one waiting; what failed is returned.
 */
async function judgeAllGone(
  ports: Ports,
  method: WatchedMethod,
  asked: {
    readonly gone: readonly GoneMove[]
    readonly memory: MoveMemory
    readonly look: ChainLook
  },
): Promise<readonly unknown[]> {
  const { gone, memory, look } = asked
  const failures: unknown[] = []
  await forTogether(gone, async (known) => {
    const { leaf } = known.move
    try {
      const isReversed = await judgeGone(ports, method, { known, memory, look })
      if (isReversed || isFinal(memory, look, leaf)) memory.open.delete(leaf)
    } catch (error) {
      failures.push(error)
    }
  })
  return failures
}

/** Returns true once a move whose block is not there is reversed, so nothing is left to watch. */
async function judgeGone(
  ports: Ports,
  method: WatchedMethod,
  asked: { readonly known: GoneMove; readonly memory: MoveMemory; readonly look: ChainLook },
): Promise<boolean> {
  const { known, memory, look } = asked
  const { claim, transfer, transaction, note } = known
  const { id, leaf } = known.move
  if (note === undefined) return false
  if (claim !== undefined && !ports.turns.has(claim.identity)) await endWaiting(ports, claim)
  const outcome = claim
    ? await askAgain(ports, method, claim)
    : await askTransferAgain(method, requirePresent(transfer, 'a transfer'))
  if (outcome.state === 'settled') {
    memory.overSince.delete(leaf)
    const other = outcome.transaction === transaction ? null : outcome.transaction
    const isEnded = await endGone(ports, id, { other, note })
    if (isEnded && outcome.blockNumber !== undefined)
      noteHeight(memory, look, { leaf, height: outcome.blockNumber })
    return false
  }
  const fields = { id, network: method.network.id, reason: outcome.reason }
  ports.log.warn(fields, 'the chain does not have any more what was booked')
  if (outcome.state === 'pending' || !outcome.final) {
    memory.overSince.delete(leaf)
    return false
  }
  // The look may be long ago, and the block by which it is over be newer.
  const since = memory.overSince.get(leaf) ?? (await method.blocks.readHeight())
  memory.overSince.set(leaf, since)
  // Until then another reorganisation might still bring it.
  if (look.final < since) return false
  // A request that is at work decides first, whether it writes or not; those that follow it wait.
  if (claim !== undefined) await endWaiting(ports, claim)
  return reverse(ports, known, outcome.reason)
}

/**
 * Puts the money of a purchase that was not answered on its payer's balance, where it is held by now. Held for that
 * purchase it could still buy it, and a reversal would count it as spent. One whose request has written stays held, as that
 * is charged for.
 */
async function endWaiting(ports: Ports, claim: Claim): Promise<void> {
  if (claim.state !== 'held' || claim.settled_by === null) return
  await ports.turns.run(claim.identity, 'end waiting', () => new DepositBook(ports).endHold(claim))
}

/** Reverses a move for good; false where the ledger did not count it, and it is tried again. */
async function reverse(
  ports: Ports,
  { claim, transfer, move }: KnownMove,
  reason: string,
): Promise<boolean> {
  const fields = { id: move.id, reason }
  if (claim !== undefined) {
    const lost = await writeReversal(ports, claim, reason)
    if (lost === undefined) return false
    ports.log.warn({ ...fields, lost: String(lost) }, 'a payment was reversed')
  } else if (transfer !== undefined) {
    await writeTransferReversal(ports, transfer, reason)
    ports.log.warn(fields, 'a transfer was reversed')
  }
  return true
}
