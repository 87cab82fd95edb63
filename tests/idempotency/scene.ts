import { type Asked, type Buyer, createFundedBuyer, list, quote } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { readReceipt } from '../support/market.ts'
import type { TestService } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

/** An application that has sold something, its owner, and a buyer. */
export type Scene = {
  readonly service: TestService
  readonly app: Data
  readonly owner: ReturnType<typeof makeTestWallet>
  readonly buyer: Buyer
}

/** A request that changes something when it is sent for the first time. */
export type Example = {
  readonly method?: string
  readonly path: string
  readonly body?: object
  readonly raw?: string
  /** Headers beside the credentials. */
  readonly headers?: Readonly<Record<string, string>>
  /** The key of the application by default. */
  readonly by?: 'operator' | 'owner' | 'nobody'
  /** The buyer that pays for it. */
  readonly payer?: Buyer
}

export async function openScene(service: TestService): Promise<Scene> {
  const app = await createData(service)
  const buyer = await createFundedBuyer(service)
  const owner = makeTestWallet(buyer.account)
  const body = { owner_address: owner.address }
  await service.request('PATCH', `/api/apps/${app.appId}`, { body, headers: service.operator })
  const price = { per_row: '100000' }
  await app.create({ name: 'sold', access_policy: { read: 'public', price } })
  await app.store('sold', [{ id: 'a' }, { id: 'b' }])
  await app.create({ name: 'c' })
  await app.store('c', [{ id: 'a', n: 1, person: 'p' }])
  await app.create({ name: 'files', collection_type: 'blob' })
  await sell({ service, app })
  return { service, app, owner, buyer }
}

/** Sells two rows; returns the id of the payment. */
export async function sell({ service, app }: Pick<Scene, 'service' | 'app'>): Promise<string> {
  const buyer = await createFundedBuyer(service)
  const bought = await buyer.buy(service, list({ root: `${app.appId}::sold`, limit: 2 }))
  const { payment_id: payment } = await readReceipt(service, bought)
  return String(payment)
}

/** Sends a request as the scene's caller of it; each signature is a new one. */
export async function send(
  { service, app, owner }: Scene,
  { by, method = 'POST', path, body, raw, headers: more }: Example,
  headers: Readonly<Record<string, string>> = {},
) {
  const all = { ...more, ...headers }
  if (by === 'owner') {
    const asked = { method, path, ...(body && { body }), headers: all }
    return askSigned(service, owner, asked)
  }
  const own = by === 'operator' ? service.operator : by === 'nobody' ? {} : app.headers
  return service.request(method, path, {
    headers: { ...own, ...all },
    ...(body && { body }),
    ...(raw !== undefined && { raw }),
  })
}

/** Makes a payment for an example that has a price. */
export async function pay(scene: Scene, example: Example, buyer: Buyer) {
  const asked: Asked = {
    method: 'POST',
    path: example.path,
    raw: JSON.stringify(example.body),
    ...(example.by !== 'nobody' && { headers: scene.app.headers }),
  }
  return buyer.payV2(await quote(scene.service, asked))
}
