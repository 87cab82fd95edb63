import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { nameRule, perAccess, perRow } from '@tollbase/testing/price-rules'
import { beforeEach, describe, expect, test } from 'vitest'

describe('updatePricing', () =>
  withService((service) => {
    let seller: Data
    beforeEach(async () => {
      seller = await createData(service())
      await seller.publish('sales', [{ id: 'a' }])
    })
    const put = (body: object) => seller.call('PUT', '/pricing', body)
    const patch = (body: object) => seller.call('PATCH', '/pricing', body)

    test('a change of single rules leaves all other rules as they were', async () => {
      await put({ rules: [perRow('5'), perAccess('7')] })
      const set = await patch({ set: [perAccess('8')] })
      expect(set.body.rules).toEqual([perRow('5'), perAccess('8')])
      const removed = await patch({ remove: [nameRule(perRow('5'))] })
      expect(removed.body).toMatchObject({ rules: [perAccess('8')], removed: [perRow('5')] })
    })

    test.each([
      [{ remove: [nameRule(perRow('5'))] }, '/remove/0'],
      [{ set: [perAccess('5')], remove: [nameRule(perAccess('5'))] }, '/remove'],
      [{ set: [perAccess('5'), perAccess('6')] }, '/set/1'],
      [{ set: [{ ...perRow('5'), amount: undefined }] }, '/set/0/amount'],
    ])(
      'a change that contradicts itself or the rules is refused and named: %j',
      async (body, field) => {
        await put({ rules: [perAccess('7')] })
        const { status, body: said } = await patch(body)
        expect(status).toBe(400)
        expect(said.details.field).toBe(field)
      },
    )

    test('a change that was made from older prices is refused with 412, which names the current version', async () => {
      const { body } = await put({ rules: [perRow('5')] })
      const change = (version: string) =>
        service().request('PATCH', `/api/apps/${seller.appId}/pricing`, {
          body: { set: [perRow('6')] },
          headers: { ...seller.headers, 'if-match': `"${version}"` },
        })
      const late = await change('0000000000000000')
      expect([late.status, late.body.code]).toEqual([412, 'PRICING_CHANGED'])
      expect(late.body.details.version).toBe(body.version)
      const done = await change(body.version)
      expect(done.status).toBe(200)
      expect(done.body.version).not.toBe(body.version)
      expect((await seller.call('GET', '/pricing')).body.version).toBe(done.body.version)
    })

    test('the ETag of a read, and that of a change, is what the next change sends as If-Match', async () => {
      const send = (method: string, body: object | undefined, tag?: string) =>
        service().request(method, `/api/apps/${seller.appId}/pricing`, {
          ...(body !== undefined && { body }),
          headers: { ...seller.headers, ...(tag !== undefined && { 'if-match': tag }) },
        })
      const change = async (amount: string, tag: string) => {
        const { status, headers } = await send('PATCH', { set: [perRow(amount)] }, tag)
        return { status, tag: headers.get('etag') ?? '' }
      }
      const put = await send('PUT', { rules: [perRow('5')] })
      const first = (await send('GET', undefined)).headers.get('etag') ?? ''
      expect(first).toContain(put.body.version)
      expect(put.headers.get('etag')).toBe(first)
      const second = await change('6', first)
      expect(second.status).toBe(200)
      expect((await send('GET', undefined)).headers.get('etag')).toBe(second.tag)
      expect((await change('7', first)).status).toBe(412)
      // A proxy that compresses answers makes the tag a weak one.
      expect((await change('7', `W/${second.tag}`)).status).toBe(200)
      expect((await change('8', '*')).status).toBe(200)
    })

    test('the answer of a named change that is sent again has its ETag', async () => {
      const change = () =>
        service().request('PATCH', `/api/apps/${seller.appId}/pricing`, {
          body: { set: [perRow('6')] },
          headers: { ...seller.headers, 'idempotency-key': 'prices' },
        })
      const tag = (await change()).headers.get('etag')
      const again = await change()
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expect([again.headers.get('etag'), tag]).toEqual([tag, expect.any(String)])
    })
  }))
