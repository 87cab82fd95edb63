import { decodeBase64, encodeUtf8 } from '@tollbase/verify/bytes'
import { decodeEntry } from '@tollbase/verify/entry'
import type { ReceiptOptions } from '@tollbase/verify/receipt'
import { type Verdict, verifyDocument } from '@tollbase/verify/verify'
import type { Bought } from './buyer.ts'
import type { Market } from './market.ts'
import type { Screen } from './screen.ts'
import type { Shop } from './seller.ts'

/** Step 8: the receipts hold, offline, and altered ones do not. */
export function verifyReceipts(market: Market, purchases: readonly Bought[]): void {
  const { screen } = market
  screen.step('The buyer verifies the receipts offline')
  screen.note(
    'By the signing key noted at the start; no request is made from here to the next step.',
  )
  for (const [at, bought] of purchases.entries()) {
    const verdict = verifyDocument(bought.receiptText, makeEvidence(market, bought))
    screen.say(bought.receipt.receipt_id)
    if (at === 0) showChecks(screen, verdict)
    else screen.check(verdict.ok, verdict.checks.map(({ name }) => name).join(', '))
  }
  const [first] = purchases
  if (first === undefined) return
  const { amount } = first.receipt
  const altered = `${amount.slice(0, -1)}${(Number(amount.at(-1)) + 1) % 10}`
  showRefusal(screen, {
    what: `with one digit changed (amount ${amount} to ${altered})`,
    verdict: verifyDocument(
      first.receiptText.replace(`"amount":"${amount}"`, `"amount":"${altered}"`),
      makeEvidence(market, first),
    ),
  })
  const reply = Uint8Array.from(first.exchange.replyBytes)
  reply[20] = (reply[20] ?? 0) ^ 1
  showRefusal(screen, {
    what: 'for a reply with one bit changed',
    verdict: verifyDocument(first.receiptText, { ...makeEvidence(market, first), reply }),
  })
}

/** Step 9: a record that was bought is in the application's log, and the log is signed for. */
export async function proveRecord(market: Market, shop: Shop, bought: Bought): Promise<string> {
  const { screen, api } = market
  screen.step('A record is proven to be in the log')
  const answer: { records: readonly { id: number; name: string }[] } = JSON.parse(
    new TextDecoder().decode(bought.exchange.replyBytes),
  )
  const [record] = answer.records
  const params = { app: shop.app, collection: 'cities', key: String(record?.id) }
  const text = await api.text('getRecordProof', { params, query: {} }, shop.key)
  const proof: { entry: string; leaf_index: number; inclusion: object } = JSON.parse(text)
  screen.say(
    `the seller hands out the proof of ${record?.name}, entry ${proof.leaf_index} of the log`,
  )
  showChecks(screen, verifyDocument(text, { trustedKey: shop.vkey }))
  const { body } = decodeEntry(decodeBase64(proof.entry))
  screen.check(
    JSON.stringify(record) === JSON.stringify(JSON.parse(body)),
    'the entry is the record that was bought, to the last digit',
  )
  screen.note(`  ${body}`)
  const altered = text.replace(/("leaf_index":)(\d+)/, (_, name: string, at: string) => {
    return `${name}${Number(at) + 1}`
  })
  showRefusal(screen, {
    what: 'at the place beside it',
    verdict: verifyDocument(altered, { trustedKey: shop.vkey }),
  })
  return text
}

/** The evidence of a purchase that the buyer has besides the receipt. */
function makeEvidence(market: Market, { exchange }: Bought): ReceiptOptions {
  return {
    trustedKey: market.vkey,
    request: { method: 'POST', path: '/list', body: exchange.body },
    reply: exchange.replyBytes,
  }
}

function showChecks(screen: Screen, verdict: Verdict): void {
  for (const { name, ok, detail } of verdict.checks) screen.check(ok, `${name}: ${detail}`)
}

function showRefusal(screen: Screen, refused: { what: string; verdict: Verdict }): void {
  screen.check(!refused.verdict.ok, `${refused.what}: refused`)
  for (const { name, ok, detail } of refused.verdict.checks) {
    if (!ok) screen.note(`  ✗ ${name}: ${detail}`)
  }
}

/** Files for `tollbase verify`, where the data folder is kept. */
export function listDocuments(
  purchases: readonly Bought[],
  proof: string,
): readonly (readonly [name: string, content: Uint8Array])[] {
  const bought = purchases.flatMap(({ receiptText, exchange }, at) => [
    [`receipt-${at + 1}.json`, encodeUtf8(receiptText)] as const,
    [`reply-${at + 1}.json`, exchange.replyBytes] as const,
  ])
  return [...bought, ['record-proof.json', encodeUtf8(proof)]]
}

/**
 * The keys that were noted. They may lie beside the documents only because nobody but the demo writes into its
 * folder.
 */
export function listKeys(
  market: Market,
  shop: Shop,
): readonly (readonly [name: string, content: Uint8Array])[] {
  return [
    ['receipt-key', encodeUtf8(market.vkey)],
    ['record-key', encodeUtf8(shop.vkey)],
  ]
}
