import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditAll, balanceBooks } from './books.ts'
import { buyThrice, meetPaywall, replayPayment } from './buyer.ts'
import { type Market, openMarket } from './market.ts'
import { listDocuments, listKeys, proveRecord, verifyReceipts } from './proofs.ts'
import { describeFailure, formatSeconds, openScreen, type Screen, StepFailure } from './screen.ts'
import { setShopPrices, showPreview, stockShop } from './seller.ts'

export type DemoOptions = {
  /** Rows of the data set to use; all when not given. */
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
  const stop = new AbortController()
  screen.title(
    'Tollbase demo: data is stored, priced, sold over HTTP 402, proven and accounted for',
  )
  const play = playAll(screen, { ...options, folder, stop: stop.signal })
  try {
    const code = await Promise.race([play, interrupted()])
    if (code !== 0) screen.note('interrupted; ending what was started')
    if (code === 0) screen.title(`\nAll ${steps} steps held, in ${formatSeconds(startedAt)}.`)
    if (code === 0 && options.keep) tellWhatIsKept(screen, folder)
    return code
  } catch (error) {
    screen.failed(describeFailure(error))
    return 1
  } finally {
    // Clients end before the service, so that neither waits for the other.
    stop.abort()
    await play.catch(() => undefined)
    if (options.keep) screen.say(`data folder: ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

/** Plays all steps; closes the service when it returns or throws. */
async function playAll(
  screen: Screen,
  play: DemoOptions & { folder: string; stop: AbortSignal },
): Promise<0> {
  const { folder, stop } = play
  const market = await openMarket(screen, { path: folder, isKept: play.keep, stop })
  try {
    const { purchases, proof, shop } = await playMarket(market, play.rows)
    await auditAll(market)
    if (play.keep) {
      for (const [name, content] of [...listDocuments(purchases, proof), ...listKeys(market, shop)])
        writeFileSync(join(folder, name), content)
    }
    return 0
  } finally {
    await market.close()
  }
}

async function playMarket(market: Market, rows: number | undefined) {
  const shop = await stockShop(market, rows)
  await setShopPrices(market, shop)
  await showPreview(market)
  const buyer = await meetPaywall(market)
  const purchases = await buyThrice(market, buyer)
  const [first] = purchases
  if (first === undefined) throw new StepFailure('nothing was bought')
  await replayPayment(market, buyer, first)
  verifyReceipts(market, purchases)
  const proof = await proveRecord(market, shop, first)
  await balanceBooks(market, { buyer, shop }, purchases)
  return { purchases, proof, shop }
}

function tellWhatIsKept(screen: Screen, folder: string): void {
  screen.say('Try next:')
  const verify = (document: string, key: string) =>
    `  npx --no tollbase verify ${folder}/${document} --key "$(cat ${folder}/${key})"`
  screen.say(`${verify('receipt-1.json', 'receipt-key')} --reply ${folder}/reply-1.json`)
  screen.say(verify('record-proof.json', 'record-key'))
  screen.say(`  npx --no tollbase dev --data-dir ${folder}`)
}

function interrupted(): Promise<number> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(130))
  })
}
