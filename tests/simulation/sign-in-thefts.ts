import { deriveBuyerKey } from './buyer-keys.ts'
import type { Market } from './market.ts'
import { makeListRequest, makeStoreRequest } from './requests.ts'
import type { Asked } from './send-request.ts'
import { signChallenge } from './sign-in-forms.ts'
import { type SignIn, type SignInOrder, signFor } from './sign-in-order.ts'

/** A request that must buy nothing. */
type Theft = {
  readonly what: string
  readonly asked: Asked
  readonly headers: Readonly<Record<string, string>>
}

const thiefKey = deriveBuyerKey('thief')

/** Sends what must buy nothing. */
export async function steal(
  market: Market,
  { name }: Pick<SignInOrder, 'name'>,
  thefts: readonly Theft[],
): Promise<void> {
  for (const { what, asked, headers } of thefts) {
    const answer = await market.send(`${name} ${what}`, asked, { headers })
    if (answer !== undefined && answer.status < 300)
      market.wrong(`${name}: a sign-in bought something ${what}: ${answer.text}`)
  }
}

/**
 * Lists what somebody who sees a sign-in, or asks its wallet to sign something like it, can try: it is for one request,
 * once, of one wallet, and for one service. Whoever signs the challenge himself pays for it himself.
 */
export function listThefts(order: SignInOrder, signIn: SignIn): readonly Theft[] {
  const { asked, key, name, payer } = order
  const { challenge, chainId, headers, isTaken } = signIn
  // Whoever may write is answered by the name alone.
  const { 'idempotency-key': _, ...own } = order.own
  const by = { key, chainId }
  const [hash] = challenge.requestId.split(':')
  const other = 'https://other.example'
  const elsewhere = { ...challenge, domain: 'other.example', uri: `${other}${asked.path}` }
  const dear = { ...challenge, requestId: `${hash}:1000000000` }
  const late = { ...challenge, expirationTime: new Date(signIn.endsMs + 3_600_000).toISOString() }
  const thief = { key: thiefKey, chainId }
  const send = (what: string, sent: Readonly<Record<string, string>>): Theft => ({
    ...{ what, asked },
    headers: { ...own, ...sent },
  })
  return [
    { ...send('for another request', headers), asked: makeOther(order) },
    send('at another service', signChallenge(elsewhere, by)),
    send('for more', signChallenge(dear, by)),
    send('for longer', signChallenge(late, by)),
    send('as somebody else', signChallenge(challenge, { ...thief, address: payer })),
    send('without money', signChallenge(challenge, thief)),
    ...(isTaken
      ? [send('under another name', { ...headers, 'idempotency-key': `stolen-${name}` })]
      : []),
  ]
}

/** A name that bought one thing buys no other one. */
export async function misuseName(market: Market, order: SignInOrder): Promise<void> {
  const { name, own, isNamed, delivered } = order
  if (!isNamed || delivered === undefined) return
  const other = { ...order, name: `${name} other`, asked: makeOther(order), signIns: [] }
  const rows = order.kind === 'read' ? order.rows + 1 : 1
  const signIn = await signFor(market, { ...other, rows, isNews: false, libraryItem: undefined })
  if (signIn === undefined) return
  const headers = { ...own, ...signIn.headers }
  const answer = await market.send(other.name, other.asked, { headers })
  if (answer === undefined || answer.status >= 500 || answer.status === 409) return
  market.wrong(`${name}: its name was used for something else: ${answer.status} ${answer.text}`)
}

function makeOther({ kind, rows, name }: SignInOrder): Asked {
  return kind === 'read'
    ? makeListRequest(rows + 1)
    : makeStoreRequest('notes', [{ mark: `stolen ${name}` }])
}
