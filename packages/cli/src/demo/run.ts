import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditAll, balanceBooks } from './books.ts'
import { buyThrice, meetPaywall, replayPayment } from './buyer.ts'
import { type Market, openMarket } from './market.ts'
import { documentsOf, proveRecord, verifyReceipts } from './proofs.ts'
import { openScreen, type Screen, StepFailure, seconds } from './screen.ts'
import { previewShop, priceShop, stockShop } from './seller.ts'

export type DemoOptions = {
  /** All of the data set when not given. */
  readonly rows: number | undefined
  readonly keep: boolean
}

const steps = 11

/**
 * Plays the main job against a service of its own: store, price, sell, prove, account. Returns 0 only if everything
 * held; otherwise it says which step did not and why, and returns 1 (130 where it was interrupted).
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const screen = openScreen(steps)
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-demo-'))
  const startedAt = Date.now()
  const interruption = interrupted()
  const open: Open = {}
  screen.title(
    'Tollbase demo: data is stored, priced, sold over HTTP 402, proven and accounted for',
  )
  const play = playAll(screen, { ...options, folder, open })
  try {
    const code = await Promise.race([play.then(() => 0), interruption])
    if (code === 0) screen.title(`\nAll ${steps} steps held, in ${seconds(startedAt)}.`)
    if (code === 0 && options.keep) tellWhatIsKept(screen, folder)
    return code
  } catch (error) {
    screen.failed(reasonOf(error))
    return 1
  } finally {
    // After an interruption the play runs on until it finds the service closed.
    const market = await open.market?.catch(() => undefined)
    await market?.running.close().catch(() => undefined)
    await play.catch(() => undefined)
    if (options.keep) screen.say(`data folder: ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

/** What is there to be closed, from the moment that it is being started. */
type Open = { market?: Promise<Market> }

async function playAll(
  screen: Screen,
  play: DemoOptions & { folder: string; open: Open },
): Promise<void> {
  const { folder, open } = play
  open.market = openMarket(screen, { path: folder, isKept: play.keep })
  const market = await open.market
  const shop = await stockShop(market, play.rows)
  await priceShop(market, shop)
  await previewShop(market)
  const buyer = await meetPaywall(market)
  const purchases = await buyThrice(market, buyer)
  const [first] = purchases
  if (first === undefined) throw new StepFailure('nothing was bought')
  await replayPayment(market, buyer, first)
  verifyReceipts(market, purchases)
  const proof = await proveRecord(market, shop, first)
  await balanceBooks(market, { buyer, shop }, purchases)
  await auditAll(market)
  if (play.keep) {
    for (const [name, content] of documentsOf(purchases, proof))
      writeFileSync(join(folder, name), content)
  }
}

function tellWhatIsKept(screen: Screen, folder: string): void {
  screen.say('Try next:')
  screen.say(`  tollbase verify ${folder}/receipt-1.json --reply ${folder}/reply-1.json`)
  screen.say(`  tollbase verify ${folder}/record-proof.json`)
  screen.say(`  tollbase dev --data-dir ${folder}`)
}

function reasonOf(error: unknown): string {
  if (error instanceof StepFailure) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function interrupted(): Promise<number> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(130))
  })
}
