import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  test('a collection counts every record as soon as its write is acknowledged, whichever way it came', async () => {
    const { appId, headers } = await service().createApp()
    const path = `/api/apps/${appId}/collections`
    const call = async (method: string, to: string, body?: unknown) => {
      const reply = await service().request(method, to, { headers, body })
      expect(reply.status, reply.text).toBeLessThan(300)
      return reply.body
    }
    const expectCount = async (count: number) => {
      expect((await call('GET', `${path}/things`)).metadata.document_count).toBe(count)
      expect((await call('GET', path))[0].metadata.document_count).toBe(count)
      expect((await call('GET', `${path}/things/stats`)).document_count).toBe(count)
      expect((await call('GET', `/api/apps/${appId}/stats`)).total_documents).toBe(count)
    }
    const root = `${appId}::things`
    await call('POST', '/store', { root, data: [{ id: '1' }, { id: '2' }, { id: '3' }] })
    const preview = await call('GET', `${path}/things/preview`)
    expect(preview).toMatchObject({ row_count_band: '1-9', sample: expect.any(Array) })
    expect(preview.sample).toHaveLength(3)
    await expectCount(3)
    await call('POST', '/store', { root, data: [{ id: '1', deleted: true }] })
    await expectCount(2)
    await call('POST', `/api/apps/${appId}/batch`, {
      operations: [{ operation: 'create', collection: 'things', data: { id: '4' } }],
    })
    await expectCount(3)
    const updated = await call('PUT', `${path}/things`, { sort_column: 'id' })
    expect(updated.metadata.document_count).toBe(3)
    const sharded = await call('PATCH', `${path}/things/sharding`, {
      keys: [{ field: 'id', type: 'hash_distributed' }],
    })
    expect(sharded.metadata.document_count).toBe(3)
  })
})
