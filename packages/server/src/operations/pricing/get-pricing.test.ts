import { createHash } from 'node:crypto'
import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { perRow } from '@tollbase/testing/price-rules'
import { beforeEach, describe, expect, test } from 'vitest'

describe('getPricing', () =>
  withService((service) => {
    let seller: Data
    beforeEach(async () => {
      seller = await createData(service())
      await seller.publish('sales', [{ id: 'a' }])
    })
    test('the version of hidden prices is found neither by hashing guesses nor by setting the same prices elsewhere', async () => {
      const other = await createData(service())
      const rule = perRow('5', { collection: 'kept' })
      const versions: string[] = []
      for (const app of [seller, other]) {
        await app.call('POST', '/collections', { name: 'kept', access_policy: 'private' })
        expect((await app.call('PUT', '/pricing', { rules: [rule] })).status).toBe(200)
        const shown = await service().request('GET', `/api/apps/${app.appId}/pricing`)
        expect(shown.body.rules).toEqual([])
        versions.push(shown.body.version)
        const own = await app.call('GET', '/pricing')
        expect(own.body).toMatchObject({ rules: [rule], version: shown.body.version })
      }
      const guess = createHash('sha256')
        .update(JSON.stringify([rule]))
        .digest('hex')
      expect(guess.startsWith(versions[0] ?? '')).toBe(false)
      expect(versions[0]).not.toBe(versions[1])
      await service().restart()
      expect((await seller.call('GET', '/pricing')).body.version).toBe(versions[0])
    })

    test('the ETag of the prices answers 304 until what the caller sees has changed, and is another one for who sees less', async () => {
      const read = (headers: Readonly<Record<string, string>>) =>
        service().request('GET', `/api/apps/${seller.appId}/pricing`, { headers })
      const readTag = async (headers: Readonly<Record<string, string>>) =>
        (await read(headers)).headers.get('etag') ?? ''
      const readAgain = async (headers: Readonly<Record<string, string>>, tag: string) => {
        const { status, text, headers: said } = await read({ ...headers, 'if-none-match': tag })
        return { status, text, tag: said.get('etag') }
      }
      await seller.call('PUT', '/pricing', { rules: [perRow('5')] })
      const own = await readTag(seller.headers)
      expect(own).toMatch(/^"[!-~]+"$/)
      expect(await readTag({})).toBe(own)
      for (const tag of [own, `W/${own}`, `"other", ${own}`, '*'])
        expect(await readAgain(seller.headers, tag), tag).toEqual({
          status: 304,
          text: '',
          tag: own,
        })

      await seller.call('POST', '/collections', { name: 'kept', access_policy: 'private' })
      await seller.call('PATCH', '/pricing', { set: [perRow('7', { collection: 'kept' })] })
      expect((await readAgain(seller.headers, own)).status).toBe(200)
      const all = await readTag(seller.headers)
      const shown = await readTag({})
      expect(all).not.toBe(shown)
      // The list that strangers see never stands for the whole one, nor the whole one for theirs.
      expect((await readAgain(seller.headers, shown)).status).toBe(200)
      expect((await readAgain({}, all)).status).toBe(200)
      expect((await readAgain({}, shown)).status).toBe(304)
    })
  }))
