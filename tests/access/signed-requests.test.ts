import { createHash } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { createSigned, makeTestWallet } from '../support/wallet.ts'

describe('requests that a wallet signs', () =>
  withService(
    (service) => {
      const now = () => Math.floor(service().world.now() / 1000)
      const body = JSON.stringify({ name: 'Signed' })

      test('a wallet that signs the creation of an application becomes its owner, lists its own and administers it', async () => {
        const wallet = makeTestWallet()
        const created = await createSigned(service(), wallet, { body, timestamp: now() })
        expect(created.status).toBe(201)
        expect(created.body.owner_address).toBe(wallet.address)
        await service().createApp()
        const list = await service().request('GET', '/api/apps', {
          headers: await wallet.sign({
            origin: service().url,
            method: 'GET',
            path: '/api/apps',
            timestamp: now(),
          }),
        })
        expect(list.body.applications).toMatchObject([
          { app_id: created.body.app_id, owner_address: wallet.address },
        ])
        const keys = `/api/apps/${created.body.app_id}/tasks?limit=1`
        const sign = { origin: service().url, method: 'GET', path: keys, timestamp: now() }
        const owned = await service().request('GET', keys, { headers: await wallet.sign(sign) })
        expect(owned.status).toBe(200)
        const thief = await service().request('GET', keys, {
          headers: await makeTestWallet().sign(sign),
        })
        expect(thief.status).toBe(401)
      })

      test('a signature counts once', async () => {
        const wallet = makeTestWallet()
        const headers = await wallet.sign({
          origin: service().url,
          method: 'POST',
          path: '/api/apps',
          body,
          timestamp: now(),
        })
        const send = () => service().request('POST', '/api/apps', { raw: body, headers })
        const replies = await Promise.all([send(), send(), send()])
        expect(replies.map(({ status }) => status).sort()).toEqual([201, 401, 401])
        expect((await send()).status).toBe(401)
      })

      // Time goes on until the request is read, so the later one is far away.
      test.each([-301, 360])(
        'a signature %d seconds away from the time is refused',
        async (seconds) => {
          const timestamp = now() + seconds
          const reply = await createSigned(service(), makeTestWallet(), { body, timestamp })
          expect(reply).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
        },
      )

      test('a signature within five minutes is accepted', async () => {
        const timestamp = now() - 290
        expect((await createSigned(service(), makeTestWallet(), { body, timestamp })).status).toBe(
          201,
        )
      })

      test('a signature over another method, path, body or time, or by another wallet, is refused', async () => {
        const wallet = makeTestWallet()
        const timestamp = now()
        const right = { origin: service().url, method: 'POST', path: '/api/apps', body, timestamp }
        const wrong = [
          { ...right, method: 'PUT' },
          { ...right, path: '/api/apps?x=1' },
          { ...right, body: JSON.stringify({ name: 'Other' }) },
          { ...right, timestamp: timestamp - 1 },
          { ...right, origin: 'https://another.example' },
          { ...right, origin: service().url.replace('http:', 'https:') },
          { ...right, origin: service().url.replace(/\d+$/, '1') },
        ]
        for (const request of wrong) {
          const signed = await wallet.sign(request)
          const headers = { ...signed, 'x-timestamp': String(timestamp) }
          const { status } = await service().request('POST', '/api/apps', { raw: body, headers })
          expect(status).toBe(401)
        }
        const other = {
          ...(await wallet.sign(right)),
          'x-wallet-address': makeTestWallet().address,
        }
        const { status } = await service().request('POST', '/api/apps', {
          raw: body,
          headers: other,
        })
        expect(status).toBe(401)
        const garbage = { ...(await wallet.sign(right)), 'x-signature': '0x1234' }
        expect(
          (await service().request('POST', '/api/apps', { raw: body, headers: garbage })).status,
        ).toBe(401)
      })

      test('a signature that names no service is refused, with the text to sign', async () => {
        const account = privateKeyToAccount(generatePrivateKey())
        const path = '/api/apps?api%5Fkey='
        const { body: known } = await service().request('GET', '/.well-known/tollbase')
        expect(known.origin).toBe(service().url)
        const timestamp = String(now())
        const rest = `POST\n${path}\n${timestamp}\n${createHash('sha256').update(body).digest('hex')}`
        const ask = async (message: string) =>
          service().request('POST', path, {
            raw: body,
            headers: {
              'x-wallet-address': account.address,
              'x-timestamp': timestamp,
              'x-signature': await account.signMessage({ message }),
            },
          })
        const old = await ask(`tollbase\n${rest}`)
        expect(old).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
        const wanted = `tollbase ${known.origin}\n${rest}`
        // A key in the address is not shown; here there is none to hide.
        expect(old.body.details.text_to_sign).toBe(wanted.replace('api%5Fkey=', 'api_key=***'))
        expect(old.body.error).toContain(JSON.stringify(old.body.details.text_to_sign))
        expect((await ask(wanted)).status).toBe(201)
      })

      test('an owner address that did not sign is refused', async () => {
        const claimed = JSON.stringify({ name: 'Signed', owner_address: makeTestWallet().address })
        const reply = await createSigned(service(), makeTestWallet(), {
          body: claimed,
          timestamp: now(),
        })
        expect(reply).toMatchObject({ status: 400, body: { details: { field: '/owner_address' } } })
      })
    },
    { config: { registration: 'open' } },
  ))
