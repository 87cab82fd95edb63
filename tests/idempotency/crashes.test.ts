import { EventEmitter, once } from 'node:events'
import { tollbase } from '@tollbase/contract/contract'
import { giveParts } from '@tollbase/testing/give-parts'
import { beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { toJsonSource } from '../../packages/server/src/base/json-source.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { RequestContext } from '../../packages/server/src/http/request-context.ts'
import type { Tenants } from '../../packages/server/src/services/applications/tenants.ts'
import { ensureCollection } from '../../packages/server/src/services/collections/new-collection.ts'
import { makeKey, writeKeys } from '../../packages/server/src/services/keys/key-record.ts'
import { dropExcess } from '../../packages/server/src/services/requests/named-request-store.ts'
import { openNamedRequests } from '../../packages/server/src/services/requests/open-named-requests.ts'
import { createFundedBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { examples } from './examples.ts'
import { type Example, openScene, pay, type Scene, send } from './scene.ts'

describe('requests with an Idempotency-Key, over crashes', () =>
  withService(
    (service) => {
      let scene: Scene
      beforeAll(async () => {
        scene = await openScene(service())
      })

      const named = (key: string) => ({ 'idempotency-key': key })
      const makeOf = async (operation: 'createKey' | 'withdrawFromWallet' | 'storeRecords') => {
        const example = await examples[operation]?.(scene)
        if (example === undefined) throw new Error(operation)
        return example
      }
      const countKeys = async () => (await scene.app.call('GET', '/keys')).body.keys.length
      const listWithdrawals = () =>
        service().database.query<{ id: string }>(
          sql`SELECT id FROM operations.outgoing_transfer WHERE kind = 'withdrawal'`,
        )
      /** Leaves the newest request as a process does that dies before it keeps the answer, or before it commits. */
      const leaveUnanswered = async (when: 'committed' | 'begun') => {
        await service().database.execute(sql`
          UPDATE operations.named_request SET answer = NULL, holder = 'a process that is gone'
          WHERE expires_at_ms = (SELECT max(expires_at_ms) FROM operations.named_request)`)
        if (when === 'begun')
          await service().database.execute(sql`DELETE FROM operations.commit_note`)
      }
      const sendNew = async (example: Example, key: string) => {
        service().world.advance(1)
        const reply = await send(scene, example, named(key))
        expect(reply.status, reply.text).toBeLessThan(300)
        return reply
      }

      test('the answer is the same after a restart, created keys included', async () => {
        const example = await makeOf('createKey')
        const first = await sendNew(example, 'restart')
        await service().restart()
        const again = await send(scene, example, named('restart'))
        expect([again.status, again.text]).toEqual([201, first.text])
        const headers = { 'x-app-key': again.body.key }
        expect((await service().request('GET', '/health', { headers })).status).toBe(200)
      })

      test('what died before its commit is done by the next try, once', async () => {
        const example = await makeOf('createKey')
        await sendNew(example, 'begun')
        await leaveUnanswered('begun')
        const before = await countKeys()
        const tries = await Promise.all([1, 2, 3].map(() => send(scene, example, named('begun'))))
        expect(new Set(tries.map(({ text }) => text)).size).toBe(1)
        expect(await countKeys()).toBe(before + 1)
      })

      test('what died after its commit is not done again: 410 says so, for as long as the key is known', async () => {
        for (const operation of ['createKey', 'storeRecords'] as const) {
          const example = await makeOf(operation)
          await sendNew(example, `committed-${operation}`)
          await leaveUnanswered('committed')
          const before = await countKeys()
          for (let tries = 0; tries < 2; tries++) {
            const again = await send(scene, example, named(`committed-${operation}`))
            expect([again.status, again.body.code]).toEqual([410, 'ANSWER_LOST'])
          }
          expect(await countKeys()).toBe(before)
        }
      })

      test('a refusal that left nothing leaves its key free', async () => {
        await makeOf('withdrawFromWallet')
        const path = `/api/wallets/${scene.buyer.address}/withdraw`
        const tooMuch: Example = { path, body: { amount: '90000000' }, by: 'owner' }
        const refused = await send(scene, tooMuch, named('free-again'))
        expect([refused.status, refused.body.code]).toEqual([409, 'BALANCE_TOO_LOW'])
        await sendNew({ ...tooMuch, body: { amount: '10000' } }, 'free-again')
      })

      test('another payment for the same request under its key is not taken', async () => {
        const example = await examples.depositToApplication?.(scene)
        if (example === undefined) throw new Error('depositToApplication')
        const pays = () => pay(scene, example, scene.buyer)
        const [one, two] = [await pays(), await pays()]
        const first = await send(scene, example, { ...named('deposit'), ...one })
        expect(first.status, first.text).toBe(200)
        const again = await send(scene, example, { ...named('deposit'), ...two })
        expect([again.status, again.text]).toEqual([200, first.text])
        expect(again.headers.get('idempotent-replayed')).toBe('true')
        const unnamed = await send(scene, example, two)
        expect(unnamed.body.payment_id).not.toBe(first.body.payment_id)
      })

      test('a paid write that died after its commit is not bought again by another payment, and its own finds the answer', async () => {
        await scene.app.create({ name: 'entries' })
        const target = { collection: 'entries' }
        const rule = { target, operation: 'write', model: 'per_record', amount: '2000' }
        const priced = await scene.app.call('PUT', '/pricing', { rules: [rule] })
        expect(priced.status, priced.text).toBe(200)
        const example: Example = {
          path: '/store',
          body: { root: `${scene.app.appId}::entries`, data: [{ name: 'once' }] },
        }
        const countEntries = async () => {
          const body = { root: `${scene.app.appId}::entries` }
          const { headers } = scene.app
          return (await service().request('POST', '/list', { body, headers })).body.records.length
        }
        const buyer = await createFundedBuyer(service())
        const pays = async () => ({ ...(await pay(scene, example, buyer)), ...named('paid-write') })
        const [one, two, three] = [await pays(), await pays(), await pays()]
        service().world.atFailpoints((point) => {
          if (point === 'payment.delivered') throw new Error('the process dies')
        })
        const lost = await send(scene, example, one)
        service().world.atFailpoints(undefined)
        expect(lost.status, lost.text).toBe(500)
        for (const other of [two, named('paid-write'), two]) {
          const again = await send(scene, example, other)
          expect([again.status, again.body.code]).toEqual([410, 'ANSWER_LOST'])
        }
        const found = await send(scene, example, one)
        expect(found.status, found.text).toBe(202)
        const after = await send(scene, example, three)
        expect([after.status, after.text]).toEqual([202, found.text])
        await expect.poll(countEntries).toBe(1)
        // Nothing was taken for the others: the change of the first is all that its buyer has here.
        const receipt = await readReceipt(service(), found)
        expect(receipt).toMatchObject({ amount: '2000' })
        expect(await readBalance(service(), buyer.address)).toBe(BigInt(receipt.change))
        // Without the name it is another request.
        const { 'idempotency-key': _, ...unnamed } = two
        expect((await send(scene, example, unnamed)).status).toBe(202)
        await expect.poll(countEntries).toBe(2)
        await expectBalanced(service())
      })

      /** The register of a process whose waits are over at once. */
      const openImpatient = (more: { readonly tenants?: Tenants } = {}) => {
        const parts = { ...service().running.service, ...more }
        const world = {
          ...parts.world,
          every: (_ms: number, call: () => void) => {
            const timer = setTimeout(call, 1)
            return () => clearTimeout(timer)
          },
        }
        return openNamedRequests({ ...parts, world }, `${service().config.dataDir}/signing-key.pem`)
      }
      const makeCall = (key: string) => {
        const requestInfo = {
          ...{ requestId: 'r', method: 'POST', path: '/x', url: '/x', queryText: '', query: {} },
          ...{ params: {}, headers: named(key), bodyBytes: Buffer.from('{}') },
          ...{
            json: () => ({ source: toJsonSource('{}'), value: {} }),
            remoteAddress: '127.0.0.1',
          },
          context: new RequestContext(0, () => undefined),
        }
        return { caller: { kind: 'operator' } as const, requestInfo }
      }
      const operation = { operationId: 'createKey', route: tollbase.createKey }

      test('who asks while the first is under way waits, and is told to come again where that takes long', async () => {
        const requests = await openImpatient()
        let end: (answer: object) => void = () => undefined
        const ended = new Promise<object>((resolve) => {
          end = resolve
        })
        const ask = () => requests.run(makeCall('busy'), operation, () => ended)
        const first = ask()
        await expect(ask()).rejects.toMatchObject({
          code: 'REQUEST_IN_PROGRESS',
          retryAfterSeconds: 1,
        })
        end({ done: true })
        expect((await first).isRepeat).toBe(false)
        expect(await ask()).toMatchObject({ isRepeat: true, answer: { text: '{"done":true}' } })
      })

      test('a refusal that left something in a chain is the answer from then on', async () => {
        const requests = await openImpatient()
        const { tenants, world } = service().running.service
        let times = 0
        const ask = () =>
          requests.run(makeCall('half'), operation, async () => {
            times += 1
            const { record } = makeKey(world, {
              ...{ appId: scene.app.appId, name: 'half', permissions: ['Read'] },
              ...{ payLimits: null, expiresAt: null },
            })
            await writeKeys(tenants, [record])
            throw new Fault('CONFLICT', { details: { half: true } })
          })
        await expect(ask()).rejects.toMatchObject({ code: 'CONFLICT' })
        const { isRepeat, answer } = await ask()
        expect([isRepeat, times]).toEqual([true, 1])
        expect(answer).toMatchObject({ status: 409, text: expect.stringContaining('"half":true') })
      })

      /** Work that ends when its test says so. */
      const makeOpenWork = () => {
        const parts = new EventEmitter()
        const [begun, ended] = [once(parts, 'begun'), once(parts, 'ended')]
        const work = async () => {
          parts.emit('begun')
          const [outcome] = await ended
          if (outcome instanceof Fault) throw outcome
          return outcome
        }
        return { work, begun, end: (outcome: object) => parts.emit('ended', outcome) }
      }

      test('a request that another process is at work on stays its own for as long as that has the chains', async () => {
        const { tenants } = service().running.service
        const chain = {
          confirmHeld: () => Promise.reject(new Fault('UNAVAILABLE')),
          flushed: () => tenants.system.chain.flushed(),
        }
        // The register asks the tenants for nothing else here.
        const withoutChain = giveParts<Tenants>({ system: { ...tenants.system, chain } })
        const holder = await openImpatient()
        const other = await openImpatient({ tenants: withoutChain })
        const { work, begun, end } = makeOpenWork()
        const first = holder.run(makeCall('theirs'), operation, work)
        await begun
        const asked = other.run(makeCall('theirs'), operation, async () => ({ twice: true }))
        await expect(asked).rejects.toMatchObject({ code: 'UNAVAILABLE' })
        end({ once: true })
        await first
        const again = await holder.run(makeCall('theirs'), operation, async () => ({ twice: true }))
        expect(again).toMatchObject({ isRepeat: true, answer: { text: '{"once":true}' } })
      })

      test('a process that lost a request to another one does not forget it by its late refusal', async () => {
        const [before, after] = [await openImpatient(), await openImpatient()]
        const [late, now] = [makeOpenWork(), makeOpenWork()]
        const refused = before.run(makeCall('lost'), operation, late.work)
        await late.begun
        const taken = after.run(makeCall('lost'), operation, now.work)
        await now.begun
        late.end(new Fault('CONFLICT'))
        await expect(refused).rejects.toMatchObject({ code: 'CONFLICT' })
        now.end({ once: true })
        await taken
        const again = await after.run(makeCall('lost'), operation, async () => ({ twice: true }))
        expect(again).toMatchObject({ isRepeat: true, answer: { text: '{"once":true}' } })
      })

      test('a demand for payment leaves nothing that speaks of the next request under its key', async () => {
        const requests = await openImpatient()
        const { tenants, world } = service().running.service
        const ask = (code: 'PAYMENT_REQUIRED' | 'CONFLICT', writes: boolean) =>
          requests.run(makeCall('demand'), operation, async () => {
            const { record } = makeKey(world, {
              ...{ appId: scene.app.appId, name: 'demand', permissions: ['Read'] },
              ...{ payLimits: null, expiresAt: null },
            })
            if (writes) await writeKeys(tenants, [record])
            throw new Fault(code)
          })
        const refused = ask('PAYMENT_REQUIRED', true)
        await expect(refused).rejects.toMatchObject({ code: 'PAYMENT_REQUIRED' })
        for (let tries = 0; tries < 2; tries++)
          await expect(ask('CONFLICT', false)).rejects.toMatchObject({ code: 'CONFLICT' })
      })

      test('a first store that was cut off between its collection and its records is done by the next try', async () => {
        const requests = await openImpatient()
        const { tenants, world } = service().running.service
        const tenant = await tenants.load(scene.app.appId)
        const ask = (work: () => Promise<object>) =>
          requests.run(makeCall('first-store'), operation, async () => {
            await ensureCollection(world, tenant, { name: 'made_by_a_store' })
            return work()
          })
        const cut = ask(() => Promise.reject(new Fault('UNAVAILABLE')))
        await expect(cut).rejects.toMatchObject({ code: 'UNAVAILABLE' })
        expect((await ask(async () => ({ stored: true }))).answer).toEqual({ stored: true })
      })

      test('of too many, the oldest of their owner are forgotten, and those of others stay', async () => {
        const { database } = service()
        const count = async () => {
          const [row] = await database.query<{ mine: number; all: number }>(sql`
            SELECT count(*) FILTER (WHERE owner = ${`app:${scene.app.appId}`})::int4 AS mine, count(*)::int4 AS "all"
            FROM operations.named_request WHERE answer IS NOT NULL`)
          return row ?? { mine: 0, all: 0 }
        }
        for (const key of ['old', 'older', 'new']) await sendNew(await makeOf('createKey'), key)
        const before = await count()
        expect(before.mine).toBeGreaterThan(2)
        await dropExcess(database, { countMax: 2, bytesMax: 2 ** 40 })
        const after = await count()
        expect(after.mine).toBe(2)
        await dropExcess(database, { countMax: 100, bytesMax: 1 })
        expect((await count()).mine).toBe(0)
        // Requests that failed have no answer, and are bounded too.
        await database.execute(sql`
          INSERT INTO operations.named_request (id, owner, request_hash, holder, expires_at_ms)
          SELECT md5(one::text), 'who fails', repeat('0', 64), 'gone', one FROM generate_series(1, 5) AS one`)
        await dropExcess(database, { countMax: 2, bytesMax: 2 ** 40 })
        const failed = await database.query<{ at: bigint }>(
          sql`SELECT expires_at_ms AS at FROM operations.named_request WHERE owner = 'who fails' ORDER BY 1`,
        )
        expect(failed.map(({ at }) => at)).toEqual([4n, 5n])
        await database.execute(sql`DELETE FROM operations.named_request WHERE owner = 'who fails'`)
      })

      test('withdrawals with one key are one, at once, after a crash and after the day', async () => {
        const example = await makeOf('withdrawFromWallet')
        service().world.advance(1)
        const key = named('one-withdrawal')
        const before = (await listWithdrawals()).length
        const at = await readBalance(service(), scene.buyer.address)
        const [first, ...more] = await Promise.all(
          Array.from({ length: 6 }, () => send(scene, example, key)),
        )
        expect(first?.status, first?.text).toBe(202)
        for (const { text } of more) expect(text).toBe(first?.text)
        await leaveUnanswered('committed')
        const resumed = await send(scene, example, key)
        expect([resumed.status, resumed.body.id]).toEqual([202, first?.body.id])
        service().world.advance(24 * 3600 * 1000 + 1)
        const late = await send(scene, example, key)
        expect([late.status, late.body.id]).toEqual([202, first?.body.id])
        const other = await send(scene, { ...example, body: { amount: '10001' } }, key)
        expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_USED'])
        expect(await listWithdrawals()).toHaveLength(before + 1)
        expect(await readBalance(service(), scene.buyer.address)).toBe(at - 10_000n)
        await expectBalanced(service())
      })
    },
    { devnet: true, config: { encryptionUpdatePrice: 0n } },
  ))
