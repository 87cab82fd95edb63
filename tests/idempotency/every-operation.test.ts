import { canChange } from '@tollbase/contract/route'
import { beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { routes } from '../support/contract-replies.ts'
import { withService } from '../support/per-engine.ts'
import { examples } from './examples.ts'
import { type Example, openScene, pay, type Scene, send } from './scene.ts'

const changing = routes.filter(([, route]) => canChange(route))
const made: Readonly<Record<string, (typeof examples)[keyof typeof examples]>> = examples

describe('a request with an Idempotency-Key', () =>
  withService(
    (service) => {
      let scene: Scene
      let otherKey: Readonly<Record<string, string>>
      beforeAll(async () => {
        scene = await openScene(service())
        const { body } = await scene.app.call('POST', '/keys', {
          permissions: ['Read', 'Write', 'Admin'],
        })
        otherKey = { 'x-app-key': body.key }
      })

      test.each(changing)(
        '%s is done once, however often and how much at once it is sent, and answers the same; its key names nothing else, and for nobody else',
        async (operation, route) => {
          const example = await made[operation]?.(scene)
          if (example === undefined) throw new Error(`${operation}: add an example of it`)
          const name = { 'idempotency-key': `key of ${operation}`.replaceAll(' ', '-') }
          const paid = example.payer && (await pay(scene, example, example.payer))
          const headers = { ...name, ...paid }
          const [first, second] = await Promise.all([
            send(scene, example, headers),
            send(scene, example, headers),
          ])
          expect([route.status ?? 200, ...(route.otherStatuses ?? [])], first.text).toContain(
            first.status,
          )
          const again = await send(scene, example, headers)
          for (const reply of [second, again]) {
            expect(reply.status).toBe(first.status)
            expect(reply.text).toBe(first.text)
            for (const header of ['content-type', 'payment-response', 'x-receipt-id'])
              expect(reply.headers.get(header), header).toBe(first.headers.get(header))
          }
          const repeats = [first, second, again].map(({ headers }) =>
            headers.get('idempotent-replayed'),
          )
          expect(repeats.filter((one) => one === 'true').length).toBeGreaterThanOrEqual(
            example.payer === undefined ? 2 : 1,
          )
          // Where the answer is a repeat, its operation was not called.
          expect(again.headers.get('idempotent-replayed')).toBe('true')
          await expectOthersRefused(operation, example, name)
        },
      )

      /** Another request with this key is refused; another caller with it is not answered by it. */
      async function expectOthersRefused(
        operation: string,
        example: Example,
        name: Readonly<Record<string, string>>,
      ) {
        const other: Example =
          example.by === 'nobody'
            ? { path: '/devnet/faucet', body: { address: scene.buyer.address, amount: '7' } }
            : { path: `/api/apps/${scene.app.appId}/collections`, body: { name: operation } }
        const refused = await send(scene, { ...other, ...(example.by && { by: example.by }) }, name)
        expect([refused.status, refused.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_USED'])
        if (example.by !== undefined || example.payer !== undefined) return
        const theirs = await send(scene, example, { ...name, ...otherKey })
        expect(theirs.headers.get('idempotent-replayed')).toBeNull()
      }

      test('what is kept of answers tells no key that was created, and nothing of keys and callers', async () => {
        const rows = await service().database.query<{ text: string }>(
          sql`SELECT row_to_json(named)::text AS text FROM operations.named_request AS named`,
        )
        expect(rows.length).toBeGreaterThan(40)
        for (const { text } of rows) {
          const { answer } = JSON.parse(text)
          const bytes = Buffer.from(String(answer).slice(2), 'hex').toString('latin1')
          expect(text + bytes).not.toMatch(/app_|key-of|request_id|success/)
        }
      })
    },
    {
      devnet: true,
      config: {
        registration: 'open',
        allowedUpstreams: [{ host: '127.0.0.1', port: 9 }],
        encryptionUpdatePrice: 0n,
      },
    },
  ))
