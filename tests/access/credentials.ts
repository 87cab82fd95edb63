import type { TestApp, TestService } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'
import type { Standing } from './oracle.ts'

export type Request = {
  readonly method: string
  /** The path with the query. */
  readonly path: string
  readonly raw?: string
}

export type Credential = {
  readonly name: string
  readonly standing: Standing
  /** Returns the headers of a request; a signature is made for that request alone. */
  readonly headers: (request: Request) => Promise<Readonly<Record<string, string>>>
}

type Wallet = ReturnType<typeof makeTestWallet>

const window = 300

/** Every credential that the interface knows, good and bad, as seen by one application. */
export async function makeCredentials(
  service: TestService,
  app: TestApp,
  ports: { owner: Wallet; other: TestApp },
): Promise<Credential[]> {
  const stranger = makeTestWallet()
  const make = (name: string, more: object = {}) => newKey(service, app, { name, ...more })
  const all = { permissions: ['Read', 'Write', 'Admin', 'Pay'] }
  const [Read, Write, Admin, Pay, revoked, rotated, expired] = await Promise.all([
    make('Read', { permissions: ['Read'] }),
    make('Write', { permissions: ['Write'] }),
    make('Admin', { permissions: ['Admin'] }),
    make('Pay', { permissions: ['Pay'] }),
    make('revoked', all),
    make('rotated', all),
    make('expired', { ...all, expires_at: new Date(service.world.now() + 60_000).toISOString() }),
  ])
  await post(service, app, { path: `keys/${revoked.hash}/revoke` })
  await post(service, app, { path: `keys/${rotated.hash}/rotate` })
  service.world.advance(61_000)
  const dead: Standing = 'dead'
  return [
    fixed('nobody', 'nobody', {}),
    fixed('empty carriers', 'nobody', { 'x-app-key': '', 'x-api-key': '', authorization: '' }),
    fixed('the key of another application', 'stranger', ports.other.headers),
    fixed('Read', 'Read', keyed(Read.text)),
    fixed('Write', 'Write', keyed(Write.text)),
    fixed('Admin', 'Admin', keyed(Admin.text)),
    fixed('Pay', 'Pay', keyed(Pay.text)),
    fixed('the operator', 'operator', service.operator),
    signed(service, { name: 'the owner', standing: 'owner', wallet: ports.owner }),
    signed(service, { name: 'another wallet', standing: 'wallet', wallet: stranger }),
    fixed('a wrong key', dead, keyed(`app_${'x'.repeat(43)}`)),
    fixed('a revoked key', dead, keyed(revoked.text)),
    fixed('an expired key', dead, keyed(expired.text)),
    fixed('a key that was rotated out', dead, keyed(rotated.text)),
    signed(service, { name: 'stale', standing: dead, wallet: ports.owner, shift: -window - 10 }),
    signed(service, { name: 'early', standing: dead, wallet: ports.owner, shift: window + 10 }),
    forged(service, { owner: ports.owner, stranger }),
    replayed(service, { owner: ports.owner, stranger }),
  ]
}

function fixed(
  name: string,
  standing: Standing,
  headers: Readonly<Record<string, string>>,
): Credential {
  return { name, standing, headers: async () => headers }
}

function keyed(key: string) {
  return { 'x-app-key': key }
}

function signed(
  service: TestService,
  by: { name: string; standing: Standing; wallet: Wallet; shift?: number },
): Credential {
  const { name, standing, wallet, shift = 0 } = by
  return { name, standing, headers: (request) => sign(service, wallet, { ...request, shift }) }
}

/** The owner's address over another wallet's signature. */
function forged(
  service: TestService,
  { owner, stranger }: { owner: Wallet; stranger: Wallet },
): Credential {
  return {
    name: 'forged',
    standing: 'dead',
    headers: async (request) => ({
      ...(await sign(service, stranger, request)),
      'x-wallet-address': owner.address,
    }),
  }
}

/** A good signature that is used for the second time. It is the owner's own, where the first time changes nothing. */
function replayed(
  service: TestService,
  { owner, stranger }: { owner: Wallet; stranger: Wallet },
): Credential {
  return {
    name: 'replayed',
    standing: 'dead',
    headers: async (request) => {
      const { method, path, raw } = request
      const isHarmless = method === 'GET' || raw?.startsWith('{"this is"') === true
      const headers = await sign(service, isHarmless ? owner : stranger, request)
      await service.request(method, path, { headers, ...(raw !== undefined && { raw }) })
      return headers
    },
  }
}

let signatures = 0

/** Each signature has a second of its own: the same request signed twice in one second gives one signature. */
function sign(service: TestService, wallet: Wallet, request: Request & { shift?: number }) {
  const { method, path, raw, shift = 0 } = request
  signatures += 1
  const spread = shift === 0 ? -(signatures % 200) : shift
  const timestamp = Math.floor(service.world.now() / 1000) + spread
  const { url: origin } = service
  return wallet.sign({ origin, method, path, timestamp, ...(raw !== undefined && { body: raw }) })
}

async function newKey(service: TestService, app: TestApp, body: object) {
  const made = await post(service, app, { path: 'keys', body })
  return { text: String(made.body.key), hash: String(made.body.key_hash) }
}

type Call = { readonly path: string; readonly body?: object }

async function post(service: TestService, app: TestApp, { path, body = {} }: Call) {
  const reply = await service.request('POST', `/api/apps/${app.appId}/${path}`, {
    body,
    headers: app.headers,
  })
  if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${reply.text}`)
  return reply
}
